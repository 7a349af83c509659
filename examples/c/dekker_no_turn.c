/*
 * Dekker's first attempt: flags without a turn.
 *
 * Mutual exclusion holds, but when both flags are up both threads wait for the other one. They
 * spin, so nothing blocks, and yet no schedule can ever end it.
 *
 * Check:    selvedge verify examples/c/dekker_no_turn.c
 * Expected: bug, a livelock: both threads wait for ever
 * Source:   E. W. Dijkstra, "Cooperating Sequential Processes", EWD 123, 1965.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static atomic_int wants[2];
static int counter;

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    atomic_store(&wants[me], 1);
    while (atomic_load(&wants[1 - me]))
        ;
    counter++;
    atomic_store(&wants[me], 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
