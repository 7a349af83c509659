/*
 * Three threads that increment a plain integer twice and look at it.
 *
 * The increments race, so this makes sense only with every plain access an event of its own. Two
 * increments each and no look: 34 executions with two threads, 7134 with three; with the look as
 * below 51318.
 *
 * Check:    selvedge verify --plain sc examples/c/micro.c
 * Expected: verified
 * Source:   after I.-P. Sachinoglou, "Preemption Bounding Techniques for Dynamic Partial Order
 *           Reduction", diploma thesis, National Technical University of Athens
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif

static int x;

static void *worker(void *unused)
{
    (void)unused;
    x++;
    x++;
    assert(0 < x);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    return 0;
}
