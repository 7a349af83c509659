/*
 * An MCS lock whose release forgets the late successor.
 *
 * A thread that swapped itself into the tail but has not linked itself in yet is overlooked: the
 * releaser sees no successor, fails to swing the tail back, and leaves. The successor then spins
 * on a flag that nobody will ever clear.
 *
 * Check:    selvedge verify examples/c/mcs_lock_buggy.c
 * Expected: bug, a livelock: the successor waits for ever
 * Source:   after J. M. Mellor-Crummey, M. L. Scott, 1991
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
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
    atomic_store(&me->next, NULL);
    atomic_store(&me->waiting, 1);
    struct node *before = atomic_exchange(&tail, me);
    if (before == NULL)
        return;
    atomic_store(&before->next, me);
    while (atomic_load(&me->waiting))
        ;
}

static void release(struct node *me)
{
    struct node *after = atomic_load(&me->next);
    if (after != NULL) {
        atomic_store(&after->waiting, 0);
    } else {
        struct node *expected = me;
        atomic_compare_exchange_strong(&tail, &expected, NULL);
    }
}

static void *worker(void *arg)
{
    struct node *me = &nodes[(intptr_t)arg];
    acquire(me);
    counter++;
    release(me);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
