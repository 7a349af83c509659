/* A counter that any thread may increment. */
#ifndef COUNTER_H
#define COUNTER_H

#include "spin.h"

struct counter {
    struct spin lock;
    long value;
};

void counter_add(struct counter *counter, long value);
long counter_read(struct counter *counter);

#endif
