/*
 * Threads that count events with fetch_add.
 *
 * Each order of the additions is an execution: n! for n threads with one event each, here 4! = 24.
 *
 * Check:    selvedge verify examples/c/event_counter.c
 * Expected: verified
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 4
#endif
#ifndef EVENTS
#define EVENTS 1
#endif

static atomic_int events;

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < EVENTS; i++)
        atomic_fetch_add_explicit(&events, 1, memory_order_relaxed);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&events) == THREADS * EVENTS);
    return 0;
}
