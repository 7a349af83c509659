/*
 * A spin lock made of one compare-exchange.
 *
 * A failed attempt reads, writes nothing and comes back to the same place: a pure iteration, which
 * never makes an execution of its own. So the executions are the orders of the critical sections:
 * with two threads and k acquisitions each there are C(2k, k), here C(6, 3) = 20.
 *
 * Check:    selvedge verify examples/c/spinlock_cas.c
 * Expected: verified
 * Source:   folklore; the count is that of I. Marmanis, M. Kokologiannakis, V. Vafeiadis,
 *           "Reconciling Preemption Bounding with DPOR", TACAS 2023.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 3
#endif

static atomic_int lock;
static int counter;

static void acquire(void)
{
    int expected = 0;
    while (!atomic_compare_exchange_strong_explicit(&lock, &expected, 1, memory_order_acquire,
                                                    memory_order_relaxed))
        expected = 0;
}

static void release(void)
{
    atomic_store_explicit(&lock, 0, memory_order_release);
}

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        acquire();
        counter++;
        release();
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS * ROUNDS);
    return 0;
}
