/* A barrier that is used once, made of a mutex and a condition variable.
 *
 * -DN=3    threads that meet
 * -DBUG    waits once instead of in a loop: a condition variable that wakes up without having been signalled
 *          (--spurious-wakeups) lets a thread through */
#include <assert.h>
#include <pthread.h>

#ifndef N
#define N 3
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_there = PTHREAD_COND_INITIALIZER;
static int arrived;

static void barrier_wait(void) {
    pthread_mutex_lock(&mutex);
    arrived++;
    if (arrived == N) {
        pthread_cond_broadcast(&all_there);
    } else {
#ifdef BUG
        pthread_cond_wait(&all_there, &mutex);
#else
        while (arrived < N)
            pthread_cond_wait(&all_there, &mutex);
#endif
    }
    assert(arrived == N);
    pthread_mutex_unlock(&mutex);
}

static void *meet(void *unused) {
    barrier_wait();
    return unused;
}

int main(void) {
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, meet, NULL);
    return 0;
}
