/* Volatile, atomic and plain variables of a recursive function. */
#include "construct.h"

FUNCTION int deep(int n, volatile int *above) {
    volatile int a[3] = {n, n + 1, *above};
    _Atomic int c = n;
    if (n > 0) a[1] += deep(n - 1, &a[2]);
    *above += a[1];
    c += a[1];
    return c + a[2];
}

static unsigned body(void) {
    volatile int top = 1;
    unsigned first = deep(4, &top);
    return first * 100 + deep(2, &top) + top;
}
