/*
 * Read-copy-update in miniature: the updater publishes a new version and frees the old one when
 * every reader has been seen outside of its read-side section.
 *
 * Check:    selvedge verify examples/c/rcu_toy.c
 * Expected: verified
 * Source:   P. E. McKenney, J. D. Slingwine, "Read-Copy Update: Using Execution History to Solve
 *           Concurrency Problems", PDCS 1998.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef READERS
#define READERS 2
#endif

struct version {
    int left, right;
};

static _Atomic(struct version *) current;
static atomic_int reading[READERS];

static struct version *new_version(int value)
{
    struct version *v = malloc(sizeof *v);
    v->left = value;
    v->right = value;
    return v;
}

static void *reader(void *arg)
{
    intptr_t me = (intptr_t)arg;
    atomic_store(&reading[me], 1);
    struct version *v = atomic_load(&current);
    assert(v->left == v->right);
    atomic_store(&reading[me], 0);
    return NULL;
}

static void wait_for_readers(void)
{
    for (int i = 0; i < READERS; i++)
        while (atomic_load(&reading[i]))
            ;
}

static void *updater(void *unused)
{
    (void)unused;
    struct version *old = atomic_exchange(&current, new_version(2));
    wait_for_readers();
    free(old);
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    atomic_store(&current, new_version(1));
    for (intptr_t i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, reader, (void *)i);
    pthread_create(&threads[READERS], NULL, updater, NULL);
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
    free(atomic_load(&current));
    return 0;
}
