// executions: 1680
// 9!/3!^3 orders of the additions.
#include "run.h"

static atomic_int x;

BODY(worker)
{
    for (int i = 0; i < 3; i++)
        atomic_fetch_add(&x, 1);
    return NULL;
}

RUN(worker, worker, worker)
