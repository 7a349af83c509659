/* Global volatile bit fields whose units overlap. */
#include "construct.h"

static struct { volatile unsigned a : 5; volatile unsigned b : 20; volatile unsigned char c : 3; signed d : 10; } s;

FUNCTION void set(int k) { s.a = k; s.b = k; s.c = k; s.d = k; }

static unsigned body(void) {
    set(3);
    s.a = 4;
    s.d = -2;
    return s.a + s.b * 7 + s.c * 11 + s.d;
}
