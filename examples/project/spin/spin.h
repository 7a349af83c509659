/* A spin lock. */
#ifndef SPIN_H
#define SPIN_H

#include <stdatomic.h>

struct spin {
    atomic_flag held;
};

void spin_lock(struct spin *lock);
void spin_unlock(struct spin *lock);

#endif
