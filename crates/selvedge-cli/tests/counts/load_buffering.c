// executions: 3
// LB: all outcomes but both threads reading one.
#include "run.h"

static atomic_int x, y;

BODY(left)
{
    int seen = atomic_load(&x);
    atomic_store(&y, 1);
    return seen ? &x : NULL;
}

BODY(right)
{
    int seen = atomic_load(&y);
    atomic_store(&x, 1);
    return seen ? &y : NULL;
}

RUN(left, right)
