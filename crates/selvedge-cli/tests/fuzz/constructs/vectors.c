/* Vectors of sixteen bytes and their elements. */
#include "construct.h"

typedef int v4 __attribute__((vector_size(16)));
static volatile v4 gv;
static v4 pv;

FUNCTION v4 add(v4 a, v4 b) {
    volatile v4 l = a;
    l += b;
    return l;
}

static unsigned body(void) {
    gv = (v4){1, 2, 3, 4};
    pv = gv;
    pv = add(pv, gv);
    gv = add(gv, pv);
    return gv[0] * 100 + gv[3] * 10 + pv[1];
}
