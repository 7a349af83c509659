/* Atomic floating-point variables, and constants in the debug information. */
#include "construct.h"

FUNCTION unsigned twice(double start) {
    _Atomic double d = start;
    d = d + 0.5;
    return (unsigned)(d * 2);
}

static unsigned body(void) {
    unsigned first = twice(1);
    return first * 10 + twice(2);
}
