/* A volatile pointer to a variable of the same frame. */
#include "construct.h"

FUNCTION unsigned add(unsigned k) {
    unsigned escaped = k;
    unsigned *volatile p = &escaped;
    *p += 2;
    return escaped;
}

FUNCTION unsigned smear(unsigned k) {
    volatile unsigned a[6];
    for (int i = 0; i < 6; i++) a[i] = k;
    return a[1];
}

static unsigned body(void) {
    unsigned all = add(5);
    all += smear(0);
    return all * 100 + add(7);
}
