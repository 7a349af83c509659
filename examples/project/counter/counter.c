#include "counter.h"

void counter_add(struct counter *counter, long value) {
    spin_lock(&counter->lock);
    counter->value += value;
    spin_unlock(&counter->lock);
}

long counter_read(struct counter *counter) {
    spin_lock(&counter->lock);
    long value = counter->value;
    spin_unlock(&counter->lock);
    return value;
}
