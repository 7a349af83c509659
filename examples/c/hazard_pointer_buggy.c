/*
 * A hazard pointer that is announced but not validated.
 *
 * Between reading the pointer and announcing it, the updater may have looked, seen nothing, and
 * freed the node.
 *
 * Check:    selvedge verify examples/c/hazard_pointer_buggy.c
 * Expected: bug, a use after free of the old value
 * Source:   after M. M. Michael, 2004
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic(int *) current;
static _Atomic(int *) hazard;

static void *reader(void *result)
{
    int *p = atomic_load(&current);
    atomic_store(&hazard, p);
    *(int *)result = *p;
    atomic_store(&hazard, NULL);
    return NULL;
}

static void *updater(void *unused)
{
    (void)unused;
    int *old = atomic_exchange(&current, calloc(1, sizeof(int)));
    while (atomic_load(&hazard) == old)
        ;
    free(old);
    return NULL;
}

int main(void)
{
    int result;
    pthread_t r, u;
    atomic_store(&current, calloc(1, sizeof(int)));
    pthread_create(&r, NULL, reader, &result);
    pthread_create(&u, NULL, updater, NULL);
    pthread_join(r, NULL);
    pthread_join(u, NULL);
    free(atomic_load(&current));
    return 0;
}
