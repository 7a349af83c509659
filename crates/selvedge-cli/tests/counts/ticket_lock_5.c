// executions: 120
// blocked: 0
// 5! orders of the tickets. A thread that waits is passed over until its number is called.
#include "run.h"

static atomic_int next, serving;

BODY(worker)
{
    int mine = atomic_fetch_add(&next, 1);
    while (atomic_load(&serving) != mine)
        ;
    atomic_store(&serving, mine + 1);
    return NULL;
}

RUN(worker, worker, worker, worker, worker)
