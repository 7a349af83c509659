// A queue after Michael and Scott. Every thread appends OPERATIONS nodes of its own and takes as many out; none may be lost or
// come twice. With BUG=1, the first thread links its first node without a
// compare-exchange, as if nobody else could be there yet; with BUG=2, every thread does so with every node.
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif

struct node {
    _Atomic(struct node *) next;
};

static struct node nodes[THREADS][OPERATIONS], dummy;
static _Atomic(struct node *) head = &dummy, tail = &dummy;
static int taken[THREADS];

static int swing(_Atomic(struct node *) *end, struct node *from, struct node *to) {
    return atomic_compare_exchange_strong(end, &from, to);
}

static void append(struct node *node) {
    for (;;) {
        struct node *last = atomic_load(&tail);
        struct node *next = atomic_load(&last->next);
        if (next != NULL) {
            swing(&tail, last, next);
            continue;
        }
#ifdef BUG
        if (BUG == 2 || node == &nodes[0][0]) {
            atomic_store(&last->next, node);
            swing(&tail, last, node);
            return;
        }
#endif
        if (swing(&last->next, NULL, node)) {
            swing(&tail, last, node);
            return;
        }
    }
}

static struct node *take(void) {
    for (;;) {
        struct node *first = atomic_load(&head);
        struct node *last = atomic_load(&tail);
        struct node *next = atomic_load(&first->next);
        if (next == NULL)
            return NULL;
        if (first == last)
            swing(&tail, last, next);
        else if (swing(&head, first, next))
            return next;
    }
}

static void *worker(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPERATIONS; i++) {
        append(&nodes[me][i]);
        if (take() != NULL)
            taken[me]++;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int sum = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += taken[i];
    }
    while (take() != NULL)
        sum++;
    assert(sum == THREADS * OPERATIONS);
}
