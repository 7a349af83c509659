#include "spin.h"

void spin_lock(struct spin *lock) {
    while (atomic_flag_test_and_set_explicit(&lock->held, memory_order_acquire)) {
    }
}

void spin_unlock(struct spin *lock) {
    atomic_flag_clear_explicit(&lock->held, memory_order_release);
}
