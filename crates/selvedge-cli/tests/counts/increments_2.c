// executions: 34
// options: --plain sc
// Two threads, two increments of a plain integer each.
#include "run.h"

static int x;

BODY(worker)
{
    x++;
    x++;
    return NULL;
}

RUN(worker, worker)
