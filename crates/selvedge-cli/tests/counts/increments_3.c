// executions: 7134
// options: --plain sc
// Three threads, two increments of a plain integer each.
#include "run.h"

static int x;

BODY(worker)
{
    x++;
    x++;
    return NULL;
}

RUN(worker, worker, worker)
