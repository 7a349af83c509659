/*
 * The ABA problem: a Treiber stack that uses its nodes again.
 *
 * One thread is about to pop A and has read that B comes next. The other one pops A and B and
 * pushes A back. The first thread's compare-exchange still finds A on top, succeeds, and makes B
 * the top, which the other thread owns.
 *
 * Check:    selvedge verify examples/c/treiber_aba.c
 * Expected: bug, an assertion: a node is popped by a thread while another one owns it
 * Source:   after R. K. Treiber, 1986; the name is from the IBM System/370 manuals.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

struct node {
    _Atomic(struct node *) next;
    atomic_int owners;
};

static struct node a, b;
static _Atomic(struct node *) top;

static void push(struct node *node)
{
    atomic_store(&node->owners, 0);
    struct node *seen = atomic_load(&top);
    do {
        atomic_store(&node->next, seen);
    } while (!atomic_compare_exchange_strong(&top, &seen, node));
}

static struct node *pop(void)
{
    struct node *seen = atomic_load(&top);
    while (seen != NULL &&
           !atomic_compare_exchange_strong(&top, &seen, atomic_load(&seen->next)))
        ;
    if (seen != NULL)
        assert(atomic_fetch_add(&seen->owners, 1) == 0);
    return seen;
}

static void *pops_twice(void *unused)
{
    (void)unused;
    pop();
    pop();
    return NULL;
}

static void *pops_and_pushes_back(void *unused)
{
    (void)unused;
    struct node *first = pop();
    pop();
    if (first != NULL)
        push(first);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    push(&b);
    push(&a);
    pthread_create(&threads[0], NULL, pops_twice, NULL);
    pthread_create(&threads[1], NULL, pops_and_pushes_back, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
