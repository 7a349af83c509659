/*
 * A Michael-Scott queue whose enqueue stores the link instead of comparing and exchanging it.
 *
 * Two enqueuers that saw the same last node both hang their node behind it; one of them is lost.
 *
 * Check:    selvedge verify examples/c/ms_queue_buggy.c
 * Expected: bug, an assertion: an enqueued node is missing
 * Source:   after M. M. Michael, M. L. Scott, 1996
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

struct node {
    _Atomic(struct node *) next;
};

static struct node nodes[THREADS + 1];
static struct node *head = &nodes[THREADS];
static _Atomic(struct node *) tail = &nodes[THREADS];

static void swing_tail(struct node *from, struct node *to)
{
    atomic_compare_exchange_strong(&tail, &from, to);
}

static void enqueue(struct node *node)
{
    for (;;) {
        struct node *last = atomic_load(&tail);
        struct node *next = atomic_load(&last->next);
        if (next == NULL) {
            atomic_store(&last->next, node);
            swing_tail(last, node);
            return;
        }
        swing_tail(last, next);
    }
}

static void *worker(void *arg)
{
    enqueue(&nodes[(intptr_t)arg]);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int length = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (struct node *node = atomic_load(&head->next); node; node = atomic_load(&node->next))
        length++;
    assert(length == THREADS);
    return 0;
}
