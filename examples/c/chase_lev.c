/*
 * The work-stealing deque of Chase and Lev.
 *
 * The owner pushes and takes at the bottom, thieves steal at the top; only for the last element
 * do they compete with a compare-exchange. Every item must be got by exactly one of them.
 *
 * Check:    selvedge verify examples/c/chase_lev.c
 * Expected: verified
 * Source:   D. Chase, Y. Lev, "Dynamic Circular Work-Stealing Deque", SPAA 2005.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef ITEMS
#define ITEMS 2
#endif
#ifndef THIEVES
#define THIEVES 1
#endif
#ifndef STEALS
#define STEALS 2
#endif

static atomic_int bottom, top;
static atomic_int items[ITEMS];
static atomic_int times_got[ITEMS];

static void push(int item)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed);
    atomic_store_explicit(&items[b % ITEMS], item, memory_order_relaxed);
    atomic_store(&bottom, b + 1);
}

static int take(void)
{
    int b = atomic_load_explicit(&bottom, memory_order_relaxed) - 1;
    atomic_store(&bottom, b);
    int t = atomic_load(&top);
    if (t > b) {
        atomic_store(&bottom, b + 1);
        return -1;
    }
    int item = atomic_load_explicit(&items[b % ITEMS], memory_order_relaxed);
    if (t < b)
        return item;
    if (!atomic_compare_exchange_strong(&top, &t, t + 1))
        item = -1;
    atomic_store(&bottom, b + 1);
    return item;
}

static int steal(void)
{
    int t = atomic_load(&top);
    int b = atomic_load(&bottom);
    if (t >= b)
        return -1;
    int item = atomic_load_explicit(&items[t % ITEMS], memory_order_relaxed);
    return atomic_compare_exchange_strong(&top, &t, t + 1) ? item : -1;
}

static void got(int item)
{
    if (item >= 0)
        atomic_fetch_add_explicit(&times_got[item], 1, memory_order_relaxed);
}

static void *owner(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++)
        push(i);
    for (int i = 0; i < ITEMS; i++)
        got(take());
    return NULL;
}

static void *thief(void *unused)
{
    (void)unused;
    for (int i = 0; i < STEALS; i++)
        got(steal());
    return NULL;
}

int main(void)
{
    pthread_t threads[THIEVES + 1];
    pthread_create(&threads[0], NULL, owner, NULL);
    for (int i = 1; i <= THIEVES; i++)
        pthread_create(&threads[i], NULL, thief, NULL);
    for (int i = 0; i <= THIEVES; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < ITEMS; i++)
        assert(atomic_load(&times_got[i]) == 1);
    return 0;
}
