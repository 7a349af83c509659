/*
 * The test-and-test-and-set lock: spin on a load, try the exchange only when the lock looks free.
 *
 * The load may see an older release than the exchange that follows it, so there are more
 * executions than orders of critical sections.
 *
 * Check:    selvedge verify examples/c/ttas_lock.c
 * Expected: verified
 * Source:   L. Rudolph, Z. Segall, "Dynamic Decentralized Cache Schemes for MIMD Parallel
 *           Processors", ISCA 1984.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

static atomic_int lock;
static int counter;

static void acquire(void)
{
    do {
        while (atomic_load_explicit(&lock, memory_order_relaxed))
            ;
    } while (atomic_exchange_explicit(&lock, 1, memory_order_acquire));
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
