/* What a failed compare-exchange writes back. */
#include "construct.h"

FUNCTION unsigned exchange(int k) {
    _Atomic int a = k;
    int expected = 5;
    int done = atomic_compare_exchange_strong(&a, &expected, 9);
    int *volatile p = &expected;
    return done * 100 + *p * 10 + a;
}

static unsigned body(void) {
    unsigned first = exchange(5);
    return first * 1000 + exchange(6);
}
