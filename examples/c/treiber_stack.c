/*
 * Treiber's lock-free stack.
 *
 * Every thread pushes one value and pops one; together they must get back what was pushed. Nodes
 * are freed only when all threads are done, so a popper may look into a node that another thread
 * has already taken.
 *
 * Check:    selvedge verify examples/c/treiber_stack.c
 * Expected: verified
 * Source:   R. K. Treiber, "Systems Programming: Coping with Parallelism", IBM RJ 5118, 1986.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif

struct node {
    struct node *next;
    int value;
};

static _Atomic(struct node *) top;
static struct node *popped[THREADS];

static void push(int value)
{
    struct node *node = malloc(sizeof *node);
    node->value = value;
    struct node *seen = atomic_load_explicit(&top, memory_order_relaxed);
    do {
        node->next = seen;
    } while (!atomic_compare_exchange_strong_explicit(&top, &seen, node, memory_order_release,
                                                      memory_order_relaxed));
}

static struct node *pop(void)
{
    struct node *seen = atomic_load_explicit(&top, memory_order_acquire);
    while (seen != NULL &&
           !atomic_compare_exchange_strong_explicit(&top, &seen, seen->next, memory_order_acquire,
                                                    memory_order_acquire))
        ;
    return seen;
}

static void *worker(void *arg)
{
    intptr_t me = (intptr_t)arg;
    push((int)me + 1);
    popped[me] = pop();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int sum = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&top) == NULL);
    for (int i = 0; i < THREADS; i++) {
        assert(popped[i] != NULL);
        sum += popped[i]->value;
        free(popped[i]);
    }
    assert(sum == THREADS * (THREADS + 1) / 2);
    return 0;
}
