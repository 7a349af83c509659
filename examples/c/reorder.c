/*
 * A setter writes a and then b; a checker reads both and expects all or nothing.
 *
 * Check:    selvedge verify examples/c/reorder.c
 * Expected: bug, an assertion: the checker came between the two writes
 * Source:   theme of the "reorder" programs of E. Farchi, Y. Nir, S. Ur, "Concurrent Bug Patterns
 *           and How to Test Them", 2003, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef SETTERS
#define SETTERS 2
#endif

static atomic_int a, b;

static void *setter(void *unused)
{
    (void)unused;
    atomic_store(&a, 1);
    atomic_store(&b, -1);
    return NULL;
}

static void *checker(void *unused)
{
    (void)unused;
    int seen_a = atomic_load(&a);
    int seen_b = atomic_load(&b);
    assert((seen_a == 0 && seen_b == 0) || (seen_a == 1 && seen_b == -1));
    return NULL;
}

int main(void)
{
    pthread_t threads[SETTERS + 1];
    for (int i = 0; i < SETTERS; i++)
        pthread_create(&threads[i], NULL, setter, NULL);
    pthread_create(&threads[SETTERS], NULL, checker, NULL);
    for (int i = 0; i <= SETTERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
