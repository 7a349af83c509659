// executions: 3
// 2+2W: four coherence orders, one of them a cycle.
#include "run.h"

static atomic_int x, y;

BODY(left)
{
    atomic_store(&x, 1);
    atomic_store(&y, 2);
    return NULL;
}

BODY(right)
{
    atomic_store(&y, 1);
    atomic_store(&x, 2);
    return NULL;
}

RUN(left, right)
