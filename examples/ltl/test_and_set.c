/*
 * A lock that is taken by whoever sets it first. Somebody always gets it, but one of the threads may never: each time
 * it tries, the other one has the lock again. Fairness of the scheduler does not help.
 *
 *     selvedge verify examples/ltl/test_and_set.c --property non-progress --fair           verified
 *     selvedge verify examples/ltl/test_and_set.c --property starvation --fair             a bug
 */
#include <pthread.h>
#include <stdatomic.h>

#include "selvedge.h"

static atomic_int lock;

static void *run(void *argument)
{
    for (;;) {
        while (atomic_exchange(&lock, 1)) {
        }
        selvedge_progress();
        lock = 0;
    }
    return argument;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, run, 0);
    run(0);
}
