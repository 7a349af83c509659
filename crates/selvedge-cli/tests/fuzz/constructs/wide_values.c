/* long double, __int128, complex and _Bool, on the stack and global. */
#include "construct.h"

static volatile long double gx;
static volatile __int128 gy;
static volatile _Complex double gc;
static volatile _Bool gb;

FUNCTION unsigned use(long double d, __int128 i) {
    volatile long double x = d;
    volatile __int128 y = i;
    volatile _Complex double c = d;
    y = y / 3;
    x = x / 2;
    c = c * c;
    gx = x;
    gy = y / 7;
    gc = c;
    gb = y > 10;
    return (unsigned)x * 100 + (unsigned)y + (unsigned)gx + (unsigned)gy + (unsigned)gc + gb;
}

static unsigned body(void) {
    unsigned first = use(8, 30);
    return first * 10 + use(6, 63);
}
