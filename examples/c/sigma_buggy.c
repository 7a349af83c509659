/*
 * Each thread marks the place that a shared index points to; main moves the index on.
 *
 * A thread may look at the index only after main has moved it again, and then two threads mark the
 * same place.
 *
 * Check:    selvedge verify examples/c/sigma_buggy.c
 * Expected: bug, an assertion: fewer marks than threads
 * Source:   theme of SV-COMP's pthread/sigma, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif

static atomic_int next;
static atomic_int marks[THREADS + 1];

static void *worker(void *unused)
{
    (void)unused;
    atomic_store(&marks[atomic_load(&next)], 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int sum = 0;
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, worker, NULL);
        atomic_fetch_add(&next, 1);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i <= THREADS; i++)
        sum += atomic_load(&marks[i]);
    assert(sum == THREADS);
    return 0;
}
