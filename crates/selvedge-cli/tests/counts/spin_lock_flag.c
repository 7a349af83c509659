// executions: 3432
// A lock of one test-and-set, which writes the value that is there when it fails and so changes
// nothing; 7 acquisitions by each of two threads: C(14, 7).
#include "run.h"

static atomic_flag lock = ATOMIC_FLAG_INIT;

BODY(worker)
{
    for (int i = 0; i < 7; i++) {
        while (atomic_flag_test_and_set(&lock))
            ;
        atomic_flag_clear(&lock);
    }
    return NULL;
}

RUN(worker, worker)
