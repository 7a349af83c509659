/*
 * A lock whose takers draw numbers, as at a counter: nobody starves if the scheduler is fair. The numbers go round,
 * so that the program has finitely many states.
 *
 *     selvedge verify examples/ltl/ticket_lock.c --property starvation --fair              verified
 *     selvedge verify examples/ltl/ticket_lock.c --property starvation                     a bug
 */
#include <pthread.h>
#include <stdatomic.h>

#include "selvedge.h"

#ifndef THREADS
#define THREADS 2
#endif
#define NUMBERS 4

static atomic_uint next, serving;

static void *run(void *argument)
{
    for (;;) {
        unsigned own = atomic_fetch_add(&next, 1) % NUMBERS;
        while (serving % NUMBERS != own) {
        }
        selvedge_progress();
        serving = (own + 1) % NUMBERS;
        atomic_fetch_and(&next, NUMBERS - 1);
    }
    return argument;
}

int main(void)
{
    static pthread_t others[THREADS];
    for (int n = 1; n < THREADS; n++)
        pthread_create(&others[n], 0, run, 0);
    run(0);
}
