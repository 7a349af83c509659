// executions: 4
// With a test load in front, which may read an older release than the exchange does.
#include "run.h"

static atomic_int lock;

BODY(worker)
{
    for (;;) {
        int expected = 0;
        while (atomic_load(&lock))
            ;
        if (atomic_compare_exchange_strong(&lock, &expected, 1))
            break;
    }
    atomic_store(&lock, 0);
    return NULL;
}

RUN(worker, worker)
