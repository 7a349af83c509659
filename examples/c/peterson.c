/*
 * Peterson's mutual exclusion for two threads.
 *
 * Raise the own flag, give the turn away, wait while the other one is interested and has the turn.
 * All accesses are sequentially consistent; with weaker ones the algorithm is broken.
 *
 * Check:    selvedge verify examples/c/peterson.c
 * Expected: verified
 * Source:   G. L. Peterson, "Myths About the Mutual Exclusion Problem", IPL 12(3), 1981.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 2
#endif

static atomic_int interested[2];
static atomic_int turn;
static int counter;

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    int other = 1 - me;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&interested[me], 1);
        atomic_store(&turn, other);
        while (atomic_load(&interested[other]) && atomic_load(&turn) == other)
            ;
        counter++;
        atomic_store(&interested[me], 0);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(counter == 2 * ROUNDS);
    return 0;
}
