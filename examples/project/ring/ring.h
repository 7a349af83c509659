/* A queue for one producer and one consumer. */
#ifndef RING_H
#define RING_H

#include <stdatomic.h>
#include <stdbool.h>

enum { RING_SLOTS = 2 };

struct ring {
    _Atomic unsigned head;
    _Atomic unsigned tail;
    int slots[RING_SLOTS];
};

bool ring_push(struct ring *ring, int value);
bool ring_pop(struct ring *ring, int *value);

#endif
