// executions: 24
// 4! orders of the additions.
#include "run.h"

static atomic_int x;

BODY(worker)
{
    for (int i = 0; i < 1; i++)
        atomic_fetch_add(&x, 1);
    return NULL;
}

RUN(worker, worker, worker, worker)
