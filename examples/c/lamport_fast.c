/*
 * Lamport's fast mutual exclusion: seven accesses when nobody competes.
 *
 * Check:    selvedge verify examples/c/lamport_fast.c
 * Expected: verified
 * Source:   L. Lamport, "A Fast Mutual Exclusion Algorithm", ACM TOCS 5(1), 1987, algorithm 2.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int x, y;
static atomic_int busy[THREADS + 1];
static int counter;

static void await_zero(atomic_int *p)
{
    while (atomic_load(p) != 0)
        ;
}

static void acquire(int me)
{
    for (;;) {
        atomic_store(&busy[me], 1);
        atomic_store(&x, me);
        if (atomic_load(&y) != 0) {
            atomic_store(&busy[me], 0);
            await_zero(&y);
            continue;
        }
        atomic_store(&y, me);
        if (atomic_load(&x) == me)
            return;
        atomic_store(&busy[me], 0);
        for (int j = 1; j <= THREADS; j++)
            await_zero(&busy[j]);
        if (atomic_load(&y) == me)
            return;
        await_zero(&y);
    }
}

static void release(int me)
{
    atomic_store(&y, 0);
    atomic_store(&busy[me], 0);
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
        pthread_create(&threads[i], NULL, worker, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS);
    return 0;
}
