/*
 * A Treiber stack whose pop frees the node at once.
 *
 * A second popper may have loaded the same top before; it then looks for the next node in memory
 * that is already free.
 *
 * Check:    selvedge verify examples/c/treiber_use_after_free.c
 * Expected: bug, a use after free of the node
 * Source:   after R. K. Treiber, 1986
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif

struct node {
    struct node *next;
};

static _Atomic(struct node *) top;

static void push(void)
{
    struct node *node = malloc(sizeof *node);
    node->next = atomic_load(&top);
    while (!atomic_compare_exchange_strong(&top, &node->next, node))
        ;
}

static void *popper(void *unused)
{
    (void)unused;
    struct node *seen = atomic_load(&top);
    while (seen != NULL && !atomic_compare_exchange_strong(&top, &seen, seen->next))
        ;
    free(seen);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        push();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, popper, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
