/* A volatile variable that only a callee accesses through a pointer. */
#include "construct.h"

FUNCTION int get(volatile int *p) { return *p; }

FUNCTION int pass(int n) {
    volatile int here = n;
    return get(&here);
}

static unsigned body(void) {
    int first = pass(1);
    return first * 10 + pass(2);
}
