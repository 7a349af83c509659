/*
 * Szymanski's mutual exclusion: a waiting room with a door, five values of one flag per thread.
 *
 * Check:    selvedge verify examples/c/szymanski.c
 * Expected: verified
 * Source:   B. K. Szymanski, "A Simple Solution to Lamport's Concurrent Programming Problem with
 *           Linear Wait", ICS 1988.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif

enum { OUTSIDE, WANTS_IN, WAITS_INSIDE, IN_DOORWAY, DOOR_CLOSED };

static atomic_int flag[THREADS];
static int counter;

/* Whether one of the threads from first up to, not including, end has its flag in low..=high. */
static int any_between(int first, int end, int low, int high)
{
    for (int j = first; j < end; j++) {
        int f = atomic_load(&flag[j]);
        if (low <= f && f <= high)
            return 1;
    }
    return 0;
}

static void acquire(int me)
{
    atomic_store(&flag[me], WANTS_IN);
    while (any_between(0, THREADS, IN_DOORWAY, DOOR_CLOSED))
        ;
    atomic_store(&flag[me], IN_DOORWAY);
    if (any_between(0, THREADS, WANTS_IN, WANTS_IN)) {
        atomic_store(&flag[me], WAITS_INSIDE);
        while (!any_between(0, THREADS, DOOR_CLOSED, DOOR_CLOSED))
            ;
    }
    atomic_store(&flag[me], DOOR_CLOSED);
    while (any_between(0, me, WAITS_INSIDE, DOOR_CLOSED))
        ;
}

static void release(int me)
{
    while (any_between(me + 1, THREADS, WAITS_INSIDE, IN_DOORWAY))
        ;
    atomic_store(&flag[me], OUTSIDE);
}

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    acquire(me);
    counter++;
    release(me);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS);
    return 0;
}
