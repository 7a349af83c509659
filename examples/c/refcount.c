/*
 * A reference-counted object: whoever drops the last reference frees it.
 *
 * Every thread reads the object before it drops its reference, and the fetch_subs order all of
 * these before the free. One execution for each order of the drops: with main's own reference and
 * three threads, 4! = 24.
 *
 * Check:    selvedge verify examples/c/refcount.c
 * Expected: verified
 * Source:   G. E. Collins, "A Method for Overlapping and Erasure of Lists", CACM 3(12), 1960.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 3
#endif

struct object {
    atomic_int references;
    int value;
};

static void drop(struct object *object)
{
    if (atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1)
        free(object);
}

static void *worker(void *arg)
{
    struct object *object = arg;
    assert(object->value == 42);
    drop(object);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    struct object *object = malloc(sizeof *object);
    atomic_store_explicit(&object->references, THREADS + 1, memory_order_relaxed);
    object->value = 42;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, object);
    drop(object);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
