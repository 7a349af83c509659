// executions: 12
// CoRR: two coherence orders, and for each six pairs of reads that do not go back.
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

BODY(reads)
{
    int first = atomic_load(&x);
    int second = atomic_load(&x);
    return first + second ? &x : NULL;
}

RUN(writes_1, writes_2, reads)
