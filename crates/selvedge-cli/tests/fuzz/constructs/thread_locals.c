/* Thread-local variables: addresses are computed between announcement and store. */
#include "construct.h"

static __thread struct { _Atomic int a; volatile char c[3]; long p; } t;
static __thread volatile int other = 5;
static __thread int plain;

FUNCTION unsigned bump(int k) {
    t.a += k;
    t.c[k] = k;
    other -= k;
    t.p = other;
    plain += k;
    other += plain;
    int *p = &plain;
    *p += 1;
    return t.a + t.c[k] + t.p + other + plain;
}

static unsigned body(void) {
    unsigned first = bump(1);
    return first * 100 + bump(2);
}
