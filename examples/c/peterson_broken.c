/*
 * Peterson's algorithm with its first two steps exchanged.
 *
 * A thread that gives the turn away before it raises its flag can pass while the other one's flag
 * is still down, and the other one passes because it has the turn.
 *
 * Check:    selvedge verify examples/c/peterson_broken.c
 * Expected: bug, an assertion: two threads are inside
 * Source:   after G. L. Peterson, 1981
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static atomic_int interested[2];
static atomic_int turn;
static atomic_int inside;

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    int other = 1 - me;
    atomic_store(&turn, other);
    atomic_store(&interested[me], 1);
    while (atomic_load(&interested[other]) && atomic_load(&turn) == other)
        ;
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    atomic_store(&interested[me], 0);
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
