/*
 * A work-stealing deque whose owner takes the last element without competing for it.
 *
 * Check:    selvedge verify examples/c/chase_lev_buggy.c
 * Expected: bug, an assertion: the item was got twice
 * Source:   after D. Chase, Y. Lev, 2005
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int bottom, top;
static atomic_int times_got;

static void take(void)
{
    int b = atomic_load(&bottom) - 1;
    atomic_store(&bottom, b);
    int t = atomic_load(&top);
    if (t > b)
        atomic_store(&bottom, b + 1);
    else
        atomic_fetch_add(&times_got, 1);
}

static void *thief(void *unused)
{
    (void)unused;
    int t = atomic_load(&top);
    int b = atomic_load(&bottom);
    if (t < b && atomic_compare_exchange_strong(&top, &t, t + 1))
        atomic_fetch_add(&times_got, 1);
    return NULL;
}

int main(void)
{
    pthread_t t;
    atomic_store(&bottom, 1);
    pthread_create(&t, NULL, thief, NULL);
    take();
    pthread_join(t, NULL);
    assert(atomic_load(&times_got) == 1);
    return 0;
}
