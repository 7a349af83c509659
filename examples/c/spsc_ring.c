/*
 * A ring buffer for one producer and one consumer, without locks or read-modify-writes.
 *
 * The producer spins while the ring is full, the consumer while it is empty. The slots are plain:
 * the two indices alone keep the threads apart.
 *
 * Check:    selvedge verify examples/c/spsc_ring.c
 * Expected: verified
 * Source:   L. Lamport, "Specifying Concurrent Program Modules", ACM TOPLAS 5(2), 1983.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef CAPACITY
#define CAPACITY 2
#endif
#ifndef ITEMS
#define ITEMS 4
#endif

static int ring[CAPACITY];
static atomic_uint written, taken;

static void put(int value)
{
    unsigned at = atomic_load_explicit(&written, memory_order_relaxed);
    while (at - atomic_load_explicit(&taken, memory_order_acquire) == CAPACITY)
        ;
    ring[at % CAPACITY] = value;
    atomic_store_explicit(&written, at + 1, memory_order_release);
}

static int take(void)
{
    unsigned at = atomic_load_explicit(&taken, memory_order_relaxed);
    while (atomic_load_explicit(&written, memory_order_acquire) == at)
        ;
    int value = ring[at % CAPACITY];
    atomic_store_explicit(&taken, at + 1, memory_order_release);
    return value;
}

static void *producer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++)
        put(i);
    return NULL;
}

static void *consumer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++)
        assert(take() == i);
    return NULL;
}

int main(void)
{
    pthread_t p, c;
    pthread_create(&p, NULL, producer, NULL);
    pthread_create(&c, NULL, consumer, NULL);
    pthread_join(p, NULL);
    pthread_join(c, NULL);
    return 0;
}
