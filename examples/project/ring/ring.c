#include "ring.h"

/* -DRING_PUBLISH=memory_order_relaxed shows what a wrong order does. */
#ifndef RING_PUBLISH
#define RING_PUBLISH memory_order_release
#endif

bool ring_push(struct ring *ring, int value) {
    unsigned tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    unsigned head = atomic_load_explicit(&ring->head, memory_order_acquire);
    if (tail - head == RING_SLOTS)
        return false;
    ring->slots[tail % RING_SLOTS] = value;
    atomic_store_explicit(&ring->tail, tail + 1, RING_PUBLISH);
    return true;
}

bool ring_pop(struct ring *ring, int *value) {
    unsigned head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&ring->tail, memory_order_acquire))
        return false;
    *value = ring->slots[head % RING_SLOTS];
    atomic_store_explicit(&ring->head, head + 1, memory_order_release);
    return true;
}
