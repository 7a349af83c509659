// executions: 3
// SB: all outcomes but both threads reading zero.
#include "run.h"

static atomic_int x, y;

BODY(left)
{
    atomic_store(&x, 1);
    return atomic_load(&y) ? &x : NULL;
}

BODY(right)
{
    atomic_store(&y, 1);
    return atomic_load(&x) ? &y : NULL;
}

RUN(left, right)
