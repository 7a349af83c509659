/*
 * Partial sums in thread-local storage, added up under a lock.
 *
 * Check:    selvedge verify examples/c/thread_local_sum.c
 * Expected: verified; one execution for each order of the critical sections, 3! = 6
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif

static _Thread_local int partial = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;

static void *worker(void *arg)
{
    for (int i = 0; i < (int)(intptr_t)arg; i++)
        partial++;
    pthread_mutex_lock(&lock);
    total += partial;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(partial == 1);
    assert(total == THREADS * (THREADS + 1) / 2);
    return 0;
}
