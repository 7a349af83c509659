/*
 * Reference counting that looks at the count in a second step.
 *
 * Both threads can count down before either looks; then both see zero and free the object.
 *
 * Check:    selvedge verify examples/c/refcount_double_free.c
 * Expected: bug, a double free
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static atomic_int references = 2;
static int *object;

static void *worker(void *unused)
{
    (void)unused;
    atomic_fetch_sub(&references, 1);
    if (atomic_load(&references) == 0)
        free(object);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    object = malloc(sizeof *object);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
