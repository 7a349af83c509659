/* A barrier that sets itself up for the next round, made of a mutex and a condition variable, used for ever.
 *
 * -DN=3      threads that meet again and again
 * -DBUG=1    nobody sets it up again: the second round never begins
 * -DBUG=2    whoever leaves last sets it up again, and somebody else may have come back by then
 * -DBUG=3    the barrier is fine but the test is not: another thread may be a round ahead */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>

#ifndef N
#define N 3
#endif
#ifndef BUG
#define BUG 0
#endif

/* Rounds are counted so far only; two neighbours must differ, and the next but one as well. */
#define ROUNDS 3

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t open = PTHREAD_COND_INITIALIZER;
static int arrived;
static int phase;
static atomic_int round_of[N];

static void barrier_wait(void) {
    pthread_mutex_lock(&mutex);
#if BUG == 2
    arrived++;
    if (arrived == N)
        pthread_cond_broadcast(&open);
    while (arrived < N && phase == 0)
        pthread_cond_wait(&open, &mutex);
    phase++;
    if (phase == N) {
        phase = 0;
        arrived = 0;
    }
#else
    int mine = phase;
    arrived++;
    if (arrived == N) {
#if BUG != 1
        arrived = 0;
#endif
        phase = !phase;
        pthread_cond_broadcast(&open);
    } else {
        while (phase == mine)
            pthread_cond_wait(&open, &mutex);
    }
#endif
    pthread_mutex_unlock(&mutex);
}

static void *meet(void *number) {
    int me = (int)(long)number;
    int mine = 0;
    for (;;) {
        mine = (mine + 1) % ROUNDS;
        atomic_store(&round_of[me], mine);
        barrier_wait();
        for (int other = 0; other < N; other++) {
            int theirs = atomic_load(&round_of[other]);
#if BUG == 3
            assert(theirs == mine);
#else
            assert(theirs == mine || theirs == (mine + 1) % ROUNDS);
#endif
        }
    }
}

int main(void) {
    pthread_t threads[N];
    for (long i = 0; i < N; i++)
        pthread_create(&threads[i], NULL, meet, (void *)i);
    pthread_exit(NULL);
}
