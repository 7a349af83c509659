/*
 * pthread_barrier_t: exactly one thread is told to be the serial one, and what was written before
 * the barrier is visible behind it.
 *
 * Check:    selvedge verify examples/c/barrier_pthread.c
 * Expected: verified
 * Source:   POSIX.1-2001
 */
#define _XOPEN_SOURCE 600
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif

static pthread_barrier_t barrier;
static int slots[THREADS];
static atomic_int serial;

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    slots[me] = me + 1;
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
        atomic_fetch_add(&serial, 1);
    for (int i = 0; i < THREADS; i++)
        assert(slots[i] == i + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&serial) == 1);
    pthread_barrier_destroy(&barrier);
    return 0;
}
