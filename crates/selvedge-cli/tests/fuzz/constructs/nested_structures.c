/* Structures with a volatile member, by value through several calls and onto the heap. */
#include "construct.h"

struct large { long a, b, c; };
struct outer { struct large l; volatile int v; };

FUNCTION struct large make(long k) { return (struct large){k, k * 2, k * 3}; }
FUNCTION struct outer wrap(struct large l, int v) { struct outer o; o.l = l; o.v = v; return o; }

FUNCTION long total(struct outer o) {
    o.v++;
    volatile struct outer *p = &o;
    return p->l.a + p->l.b + p->l.c + p->v;
}

static unsigned body(void) {
    struct outer local = wrap(make(1), 5);
    struct outer *heap = malloc(sizeof *heap);
    *heap = wrap(make(2), total(local));
    unsigned all = total(*heap);
    *heap = local;
    all = all * 100 + total(*heap);
    free(heap);
    return all;
}
