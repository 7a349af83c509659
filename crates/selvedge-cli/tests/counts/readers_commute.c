// executions: 24
// Three writers and a reader: 3! coherence orders, four writes to read.
#include "run.h"

static atomic_int x;

BODY(writes_1)
{
    atomic_store(&x, 1);
    return NULL;
}

BODY(writes_2)
{
    atomic_store(&x, 2);
    return NULL;
}

BODY(writes_3)
{
    atomic_store(&x, 3);
    return NULL;
}

BODY(reads)
{
    return atomic_load(&x) ? &x : NULL;
}

RUN(writes_1, writes_2, writes_3, reads)
