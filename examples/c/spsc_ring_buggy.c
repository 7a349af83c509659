/*
 * A ring buffer that announces an item before it has written it.
 *
 * Check:    selvedge verify examples/c/spsc_ring_buggy.c
 * Expected: bug, a data race on the slot
 * Source:   after L. Lamport, 1983
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef CAPACITY
#define CAPACITY 2
#endif

static int ring[CAPACITY];
static atomic_uint written, taken;

static void *producer(void *unused)
{
    (void)unused;
    for (int i = 0; i < CAPACITY; i++) {
        unsigned at = atomic_load(&written);
        atomic_store(&written, at + 1);
        ring[at] = i;
    }
    return NULL;
}

static void *consumer(void *sum)
{
    for (int i = 0; i < CAPACITY; i++) {
        unsigned at = atomic_load(&taken);
        while (atomic_load(&written) == at)
            ;
        *(int *)sum += ring[at];
        atomic_store(&taken, at + 1);
    }
    return NULL;
}

int main(void)
{
    int sum = 0;
    pthread_t p, c;
    pthread_create(&p, NULL, producer, NULL);
    pthread_create(&c, NULL, consumer, &sum);
    pthread_join(p, NULL);
    pthread_join(c, NULL);
    return 0;
}
