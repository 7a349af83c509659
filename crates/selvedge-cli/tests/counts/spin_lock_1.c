// executions: 2
// A lock of one compare-exchange, 1 acquisitions by each of two threads: C(2, 1).
#include "run.h"

static atomic_int lock;

BODY(worker)
{
    for (int i = 0; i < 1; i++) {
        int expected = 0;
        while (!atomic_compare_exchange_strong(&lock, &expected, 1))
            expected = 0;
        atomic_store(&lock, 0);
    }
    return NULL;
}

RUN(worker, worker)
