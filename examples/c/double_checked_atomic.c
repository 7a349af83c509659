/*
 * Double-checked locking with an atomic pointer, as it should be.
 *
 * Check:    selvedge verify examples/c/double_checked_atomic.c
 * Expected: verified
 * Source:   J. Preshing, "Double-Checked Locking is Fixed In C++11", 2013; the pattern is D. C.
 *           Schmidt, T. Harrison, 1996.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 3
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(int *) instance;
static int made_so_far;

static int *get(void)
{
    int *it = atomic_load_explicit(&instance, memory_order_acquire);
    if (it == NULL) {
        pthread_mutex_lock(&lock);
        it = atomic_load_explicit(&instance, memory_order_relaxed);
        if (it == NULL) {
            it = malloc(sizeof *it);
            *it = 42;
            made_so_far++;
            atomic_store_explicit(&instance, it, memory_order_release);
        }
        pthread_mutex_unlock(&lock);
    }
    return it;
}

static void *worker(void *unused)
{
    (void)unused;
    assert(*get() == 42);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(made_so_far == 1);
    free(atomic_load(&instance));
    return 0;
}
