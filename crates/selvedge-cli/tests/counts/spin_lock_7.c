// executions: 3432
// with at most 0, 1, 2, … preemptions: 2 14 86 266
// A lock of one compare-exchange, 7 acquisitions by each of two threads: C(14, 7).
#include "run.h"

static atomic_int lock;

BODY(worker)
{
    for (int i = 0; i < 7; i++) {
        int expected = 0;
        while (!atomic_compare_exchange_strong(&lock, &expected, 1))
            expected = 0;
        atomic_store(&lock, 0);
    }
    return NULL;
}

RUN(worker, worker)
