/*
 * Threads that count events with a load and a store.
 *
 * Check:    selvedge verify examples/c/event_counter_lost.c
 * Expected: bug, an assertion: an event was lost
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int events;

static void *worker(void *unused)
{
    (void)unused;
    atomic_store(&events, atomic_load(&events) + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&events) == THREADS);
    return 0;
}
