/*
 * Two threads that step back for each other in a corridor, for ever: each of them moves all the time, and neither gets
 * through.
 *
 *     selvedge verify examples/ltl/after_you.c --property non-progress --fair              a bug
 */
#include <pthread.h>
#include <stdatomic.h>

#include "selvedge.h"

static atomic_int wants[2];

static void *run(void *argument)
{
    int own = argument != 0, other = 1 - own;
    for (;;) {
        wants[own] = 1;
        while (wants[other]) {
            wants[own] = 0;
            wants[own] = 1;
        }
        selvedge_progress();
        wants[own] = 0;
    }
    return 0;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, 0, run, (void *)1);
    run(0);
}
