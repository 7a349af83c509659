/*
 * Peterson's lock, taken for ever by two threads. Whoever wants in gets in, if the scheduler is fair: a thread
 * that can go on goes on at some time. An unfair one may leave it standing.
 *
 *     selvedge verify examples/ltl/peterson.c --ltl 'G (wants -> F inside)' --fair         verified
 *     selvedge verify examples/ltl/peterson.c --ltl 'G (wants -> F inside)'                a bug
 *     selvedge verify examples/ltl/peterson.c --ltl 'G !({count > 1})'                     verified
 *     selvedge verify examples/ltl/peterson.c --property starvation --fair                 verified
 *
 * G. L. Peterson, Myths about the mutual exclusion problem, 1981.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "selvedge.h"

static atomic_int flag[2], turn;
static atomic_int count;

static void *run(void *argument)
{
    int own = argument != 0, other = 1 - own;
    for (;;) {
        flag[own] = 1;
        if (own == 0)
            selvedge_prop("wants", 1);
        turn = other;
        while (flag[other] && turn == other) {
        }
        count++;
        selvedge_progress();
        if (own == 0) {
            selvedge_prop("wants", 0);
            selvedge_prop("inside", 1);
            selvedge_prop("inside", 0);
        }
        count--;
        flag[own] = 0;
    }
    return 0;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, run, (void *)1);
    run(0);
}
