/*
 * A Treiber stack whose push stores the new top instead of comparing and exchanging it.
 *
 * Two pushes that saw the same top: the second one overwrites the first, whose node is lost.
 *
 * Check:    selvedge verify examples/c/treiber_dropped_cas.c
 * Expected: bug, an assertion: a pushed value is missing
 * Source:   after R. K. Treiber, 1986
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
    struct node *next;
};

static _Atomic(struct node *) top;
static struct node nodes[THREADS];

static void *worker(void *arg)
{
    struct node *node = &nodes[(intptr_t)arg];
    node->next = atomic_load(&top);
    atomic_store(&top, node);
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
    for (struct node *node = atomic_load(&top); node != NULL; node = node->next)
        length++;
    assert(length == THREADS);
    return 0;
}
