/*
 * A bounded queue for many producers and many consumers.
 *
 * Every cell carries a sequence number that tells whose turn it is; positions are claimed by
 * compare-exchange, values are plain.
 *
 * Check:    selvedge verify examples/c/mpmc_queue.c
 * Expected: verified
 * Source:   D. Vyukov, "Bounded MPMC queue", 1024cores.net, 2010.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stddef.h>

#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef PRODUCERS
#define PRODUCERS 2
#endif

struct cell {
    atomic_uint turn;
    int value;
};

static struct cell cells[CAPACITY];
static atomic_uint to_write, to_read;

static int claim(atomic_uint *position, unsigned at)
{
    return atomic_compare_exchange_strong_explicit(position, &at, at + 1, memory_order_relaxed,
                                                   memory_order_relaxed);
}

static int try_put(int value)
{
    for (;;) {
        unsigned at = atomic_load_explicit(&to_write, memory_order_relaxed);
        struct cell *cell = &cells[at % CAPACITY];
        int ahead = (int)(atomic_load_explicit(&cell->turn, memory_order_acquire) - at);
        if (ahead < 0)
            return 0;
        if (ahead == 0 && claim(&to_write, at)) {
            cell->value = value;
            atomic_store_explicit(&cell->turn, at + 1, memory_order_release);
            return 1;
        }
    }
}

static int try_take(int *value)
{
    for (;;) {
        unsigned at = atomic_load_explicit(&to_read, memory_order_relaxed);
        struct cell *cell = &cells[at % CAPACITY];
        int ahead = (int)(atomic_load_explicit(&cell->turn, memory_order_acquire) - (at + 1));
        if (ahead < 0)
            return 0;
        if (ahead == 0 && claim(&to_read, at)) {
            *value = cell->value;
            atomic_store_explicit(&cell->turn, at + CAPACITY, memory_order_release);
            return 1;
        }
    }
}

static void *producer(void *arg)
{
    int fits = try_put((int)(intptr_t)arg);
    assert(fits);
    return NULL;
}

static void *consumer(void *result)
{
    try_take(result);
    return NULL;
}

int main(void)
{
    pthread_t threads[PRODUCERS + 1];
    int sum = 0, value;
    for (unsigned i = 0; i < CAPACITY; i++)
        atomic_store_explicit(&cells[i].turn, i, memory_order_relaxed);
    for (intptr_t i = 0; i < PRODUCERS; i++)
        pthread_create(&threads[i], NULL, producer, (void *)(i + 1));
    pthread_create(&threads[PRODUCERS], NULL, consumer, &sum);
    for (int i = 0; i <= PRODUCERS; i++)
        pthread_join(threads[i], NULL);
    while (try_take(&value))
        sum += value;
    assert(sum == PRODUCERS * (PRODUCERS + 1) / 2);
    return 0;
}
