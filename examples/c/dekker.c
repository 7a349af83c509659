/*
 * Dekker's mutual exclusion for two threads, the first one known to be right.
 *
 * Check:    selvedge verify examples/c/dekker.c
 * Expected: verified
 * Source:   T. J. Dekker, as told by E. W. Dijkstra in "Over de sequentialiteit van
 *           procesbeschrijvingen", EWD 35, about 1962.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 1
#endif

static atomic_int wants[2];
static atomic_int turn;
static int counter;

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    int other = 1 - me;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_store(&wants[me], 1);
        while (atomic_load(&wants[other])) {
            if (atomic_load(&turn) == me)
                continue;
            atomic_store(&wants[me], 0);
            while (atomic_load(&turn) != me)
                ;
            atomic_store(&wants[me], 1);
        }
        counter++;
        atomic_store(&turn, other);
        atomic_store(&wants[me], 0);
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
