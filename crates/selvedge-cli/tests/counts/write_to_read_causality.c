// executions: 7
// WRC: all eight outcomes but the one that breaks causality.
#include "run.h"

static atomic_int x, y;

BODY(writes)
{
    atomic_store(&x, 1);
    return NULL;
}

BODY(passes_on)
{
    int seen = atomic_load(&x);
    atomic_store(&y, 1);
    return seen ? &x : NULL;
}

BODY(reads)
{
    int first = atomic_load(&y);
    int second = atomic_load(&x);
    return first + second ? &y : NULL;
}

RUN(writes, passes_on, reads)
