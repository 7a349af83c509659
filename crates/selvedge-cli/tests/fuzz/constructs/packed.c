/* Members that are not aligned. */
#include "construct.h"

#pragma pack(1)
struct packed { char c; volatile int v; long l; volatile short s; };
#pragma pack()
static struct packed g;

FUNCTION struct packed make(int k) { struct packed p = {k, k, k, k}; p.v += 2; return p; }

static unsigned body(void) {
    g = make(1);
    g.v++;
    unsigned all = g.v * 10 + g.s;
    struct packed local = make(3);
    local.s = g.s;
    g = local;
    return all * 100 + g.v * 10 + g.s + g.l;
}
