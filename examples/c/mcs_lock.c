/*
 * The MCS queue lock: each thread spins on a flag in its own queue node.
 *
 * A releasing thread that sees no successor tries to swing the tail back to empty; when that
 * fails, a successor is about to link itself in, and the releaser waits for the link.
 *
 * Check:    selvedge verify examples/c/mcs_lock.c
 * Expected: verified
 * Source:   J. M. Mellor-Crummey, M. L. Scott, "Algorithms for Scalable Synchronization on
 *           Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

struct node {
    _Atomic(struct node *) next;
    atomic_int waiting;
};

static _Atomic(struct node *) tail;
static struct node nodes[THREADS];
static int counter;

static void acquire(struct node *me)
{
    atomic_store_explicit(&me->next, NULL, memory_order_relaxed);
    atomic_store_explicit(&me->waiting, 1, memory_order_relaxed);
    struct node *before = atomic_exchange_explicit(&tail, me, memory_order_acq_rel);
    if (before == NULL)
        return;
    atomic_store_explicit(&before->next, me, memory_order_release);
    while (atomic_load_explicit(&me->waiting, memory_order_acquire))
        ;
}

static void release(struct node *me)
{
    struct node *after = atomic_load_explicit(&me->next, memory_order_acquire);
    if (after == NULL) {
        struct node *expected = me;
        if (atomic_compare_exchange_strong_explicit(&tail, &expected, NULL, memory_order_release,
                                                    memory_order_relaxed))
            return;
        while ((after = atomic_load_explicit(&me->next, memory_order_acquire)) == NULL)
            ;
    }
    atomic_store_explicit(&after->waiting, 0, memory_order_release);
}

static void *worker(void *arg)
{
    struct node *me = &nodes[(intptr_t)arg];
    for (int i = 0; i < ROUNDS; i++) {
        acquire(me);
        counter++;
        release(me);
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
