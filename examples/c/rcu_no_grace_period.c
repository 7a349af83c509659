/*
 * Read-copy-update that does not wait for its readers.
 *
 * Check:    selvedge verify examples/c/rcu_no_grace_period.c
 * Expected: bug, a use after free of the old version
 * Source:   after P. E. McKenney, J. D. Slingwine, 1998
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

static _Atomic(int *) current;

static void *reader(void *result)
{
    int *p = atomic_load(&current);
    *(int *)result = *p;
    return NULL;
}

static void *updater(void *unused)
{
    (void)unused;
    int *old = atomic_exchange(&current, calloc(1, sizeof(int)));
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
