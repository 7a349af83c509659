// A stack after Treiber. Every thread puts OPERATIONS nodes on it and takes as many off; none may be lost or come twice. With BUG=1, the
// first thread puts its first node on without a compare-exchange, as if nobody else could be there yet; with BUG=2, every thread does so with
// every node.
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
    struct node *below;
};

static struct node nodes[THREADS][OPERATIONS];
static _Atomic(struct node *) top;
static int taken[THREADS];

static void put(struct node *node) {
    struct node *seen = atomic_load(&top);
#ifdef BUG
    if (BUG == 2 || node == &nodes[0][0]) {
        node->below = seen;
        atomic_store(&top, node);
        return;
    }
#endif
    do {
        node->below = seen;
    } while (!atomic_compare_exchange_strong(&top, &seen, node));
}

static struct node *take(void) {
    struct node *seen = atomic_load(&top);
    while (seen != NULL && !atomic_compare_exchange_strong(&top, &seen, seen->below))
        ;
    return seen;
}

static void *worker(void *argument) {
    int me = (int)(intptr_t)argument;
    for (int i = 0; i < OPERATIONS; i++) {
        put(&nodes[me][i]);
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
