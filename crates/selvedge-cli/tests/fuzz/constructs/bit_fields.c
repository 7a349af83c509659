/* Bit fields, volatile and not, by value. */
#include "construct.h"

struct bits { unsigned a : 3; volatile unsigned b : 7; unsigned c : 5; unsigned long d : 40; signed char e : 4; };

FUNCTION struct bits make(int k) {
    struct bits s = {k, k, k, k, k};
    s.b++;
    return s;
}

static unsigned body(void) {
    struct bits s = make(1);
    unsigned all = s.b;
    s.b = 9;
    all = all * 10 + s.b + s.a + s.e;
    s = make(2);
    return all * 100 + s.b * 10 + s.d + s.e;
}
