// executions: 15
// Independent reads of independent writes: all 16 but the readers that disagree.
#include "run.h"

static atomic_int x, y;

BODY(writes_x)
{
    atomic_store(&x, 1);
    return NULL;
}

BODY(writes_y)
{
    atomic_store(&y, 1);
    return NULL;
}

BODY(reads_x_y)
{
    int first = atomic_load(&x);
    int second = atomic_load(&y);
    return first + second ? &x : NULL;
}

BODY(reads_y_x)
{
    int first = atomic_load(&y);
    int second = atomic_load(&x);
    return first + second ? &y : NULL;
}

RUN(writes_x, writes_y, reads_x_y, reads_y_x)
