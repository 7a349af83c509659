/* An argument in a register whose address is taken. */
#include "construct.h"

FUNCTION long get(long v) { return *(volatile long *)&v; }

static unsigned body(void) {
    long first = get(1);
    return first * 10 + get(2);
}
