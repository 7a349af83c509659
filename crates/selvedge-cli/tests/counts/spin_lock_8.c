// executions: 12870
// with at most 0, 1, 2, … preemptions: 2 16 114 408
// A lock of one compare-exchange, 8 acquisitions by each of two threads: C(16, 8).
#include "run.h"

static atomic_int lock;

BODY(worker)
{
    for (int i = 0; i < 8; i++) {
        int expected = 0;
        while (!atomic_compare_exchange_strong(&lock, &expected, 1))
            expected = 0;
        atomic_store(&lock, 0);
    }
    return NULL;
}

RUN(worker, worker)
