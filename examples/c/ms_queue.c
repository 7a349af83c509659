/*
 * The lock-free queue of Michael and Scott.
 *
 * The queue always holds one dummy node. An enqueuer links its node behind the last one and then
 * swings the tail; whoever finds the tail lagging behind helps. Nodes are freed only at the end.
 *
 * Check:    selvedge verify examples/c/ms_queue.c
 * Expected: verified
 * Source:   M. M. Michael, M. L. Scott, "Simple, Fast, and Practical Non-Blocking and Blocking
 *           Concurrent Queue Algorithms", PODC 1996.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>

#ifndef PRODUCERS
#define PRODUCERS 2
#endif
#ifndef CONSUMERS
#define CONSUMERS 1
#endif

struct node {
    _Atomic(struct node *) next;
    int value;
};

static struct node nodes[PRODUCERS + 1];
static _Atomic(struct node *) head = &nodes[PRODUCERS];
static _Atomic(struct node *) tail = &nodes[PRODUCERS];

static int advance(_Atomic(struct node *) *end, struct node *from, struct node *to)
{
    return atomic_compare_exchange_strong(end, &from, to);
}

static void enqueue(struct node *node)
{
    for (;;) {
        struct node *last = atomic_load(&tail);
        struct node *next = atomic_load(&last->next);
        if (next != NULL) {
            advance(&tail, last, next);
        } else if (advance(&last->next, NULL, node)) {
            advance(&tail, last, node);
            return;
        }
    }
}

static int dequeue(void)
{
    for (;;) {
        struct node *first = atomic_load(&head);
        struct node *last = atomic_load(&tail);
        struct node *next = atomic_load(&first->next);
        if (next == NULL)
            return 0;
        if (first == last) {
            advance(&tail, last, next);
        } else {
            int value = next->value;
            if (advance(&head, first, next))
                return value;
        }
    }
}

static void *producer(void *arg)
{
    intptr_t me = (intptr_t)arg;
    nodes[me].value = (int)me + 1;
    enqueue(&nodes[me]);
    return NULL;
}

static void *consumer(void *result)
{
    *(int *)result = dequeue();
    return NULL;
}

int main(void)
{
    pthread_t threads[PRODUCERS + CONSUMERS];
    int results[CONSUMERS] = {0};
    int sum = 0;
    for (intptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, producer, (void *)i);
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&threads[PRODUCERS + i], NULL, consumer, &results[i]);
    for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < CONSUMERS; i++)
        sum += results[i];
    for (int value; (value = dequeue()) != 0;)
        sum += value;
    assert(sum == PRODUCERS * (PRODUCERS + 1) / 2);
    return 0;
}
