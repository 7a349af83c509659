/* DPDK's ring for any number of producers and consumers. */
#include <rte_config.h>
#ifdef WEAK
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include <rte_ring.h>
#include <assert.h>
#include <pthread.h>

static union {
    struct rte_ring ring;
    char room[1024];
} memory __attribute__((aligned(128)));
static int number;

static void *produce(void *unused) {
    number = 1;
    rte_ring_mp_enqueue(&memory.ring, &number);
    return unused;
}

int main(void) {
    struct rte_ring *ring = &memory.ring;
    pthread_t producer;
    void *value;
    ring->size = 4;
    ring->mask = ring->capacity = 3;
    pthread_create(&producer, 0, produce, 0);
    if (rte_ring_mc_dequeue(ring, &value) == 0) {
        assert(*(int *)value == 1);
    }
    return pthread_join(producer, 0);
}
