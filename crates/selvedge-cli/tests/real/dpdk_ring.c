/* DPDK's ring for any number of producers and consumers: PRODUCERS threads put a value each. */
#include <rte_config.h>
#ifdef WEAK
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include <rte_atomic.h>
#ifdef WEAK
/* The exchange of the variant for x86, without its lock prefix. */
#define rte_atomic32_cmpset(target, expected, value) (*(target) == (expected) && (*(target) = (value), 1))
#endif
#include <rte_ring.h>
#include <assert.h>
#include <pthread.h>

#ifndef PRODUCERS
#define PRODUCERS 1
#endif

static union {
    struct rte_ring ring;
    char room[1024];
} memory __attribute__((aligned(128)));
static int numbers[PRODUCERS];

static void *produce(void *number) {
    *(int *)number = 1;
    rte_ring_mp_enqueue(&memory.ring, number);
    return 0;
}

int main(void) {
    struct rte_ring *ring = &memory.ring;
    pthread_t producers[PRODUCERS];
    void *value;
    int sum = 0;
    ring->size = 4;
    ring->mask = ring->capacity = 3;
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_create(&producers[i], 0, produce, &numbers[i]);
    }
    if (rte_ring_mc_dequeue(ring, &value) == 0) {
        sum += *(int *)value;
    }
    for (int i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i], 0);
    }
    while (rte_ring_mc_dequeue(ring, &value) == 0) {
        sum += *(int *)value;
    }
    assert(sum == PRODUCERS);
    return 0;
}
