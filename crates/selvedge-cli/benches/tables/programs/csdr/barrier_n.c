/* A barrier with a condition variable for each thread.
 *
 * -DN=3    threads that meet
 * -DBUG    a slip of the pen: the same condition variable is signalled again and again */
#include <assert.h>
#include <pthread.h>

#ifndef N
#define N 3
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t go[N];
static int there[N];
static int arrived;
static int opened;

static void barrier_wait(int me) {
    pthread_mutex_lock(&mutex);
    there[me] = 1;
    arrived++;
    if (arrived == N) {
        opened = 1;
        for (int i = 0; i < N; i++)
#ifdef BUG
            pthread_cond_signal(&go[0]);
#else
            pthread_cond_signal(&go[i]);
#endif
    } else {
        while (!opened)
            pthread_cond_wait(&go[me], &mutex);
    }
    for (int i = 0; i < N; i++)
        assert(there[i]);
    pthread_mutex_unlock(&mutex);
}

static void *meet(void *number) {
    barrier_wait((int)(long)number);
    return NULL;
}

int main(void) {
    pthread_t threads[N];
    for (int i = 0; i < N; i++)
        pthread_cond_init(&go[i], NULL);
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, meet, (void *)i);
    pthread_exit(NULL);
}
