/*
 * A barrier without a sense, used twice.
 *
 * A waiting thread looks for a count of zero. A fast one can arrive at the second barrier and
 * count again before the slow one has looked: then each waits for the other.
 *
 * Check:    selvedge verify examples/c/barrier_reuse_bug.c
 * Expected: bug, a livelock: both threads spin for ever
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int arrived;

static void barrier(void)
{
    if (atomic_fetch_add(&arrived, 1) == THREADS - 1)
        atomic_store(&arrived, 0);
    else
        while (atomic_load(&arrived) != 0)
            ;
}

static void *worker(void *unused)
{
    (void)unused;
    barrier();
    barrier();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
