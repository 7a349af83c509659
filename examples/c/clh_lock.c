/*
 * The CLH queue lock: each thread spins on the node of the thread before it, and then owns it.
 *
 * As with tickets, the order of the exchanges decides everything. Two threads with k acquisitions
 * each: C(2k, k) executions, here C(4, 2) = 6.
 *
 * Check:    selvedge verify examples/c/clh_lock.c
 * Expected: verified
 * Source:   T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", TR
 *           93-02-02, University of Washington, 1993; P. Magnusson, A. Landin, E. Hagersten, 1994.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

struct node {
    atomic_int held;
};

static struct node nodes[THREADS + 1];
static _Atomic(struct node *) tail = &nodes[THREADS];
static int counter;

static struct node *acquire(struct node *me)
{
    atomic_store_explicit(&me->held, 1, memory_order_relaxed);
    struct node *before = atomic_exchange_explicit(&tail, me, memory_order_acq_rel);
    while (atomic_load_explicit(&before->held, memory_order_acquire))
        ;
    return before;
}

static void *worker(void *arg)
{
    struct node *me = &nodes[(intptr_t)arg];
    for (int i = 0; i < ROUNDS; i++) {
        struct node *before = acquire(me);
        counter++;
        atomic_store_explicit(&me->held, 0, memory_order_release);
        me = before;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS * ROUNDS);
    return 0;
}
