/* Loops as the paper bounds them: a condition is evaluated ROUNDS times at most; if it still holds then, the
 * thread ends there, and the execution counts all the same. Such a loop counts its rounds, so that none of
 * them is a pure iteration, which Selvedge would leave out. */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef ROUNDS
#define ROUNDS 6
#endif

#define WHILE(condition)                                   \
    for (int round_ = 0; condition;)                       \
        if (++round_ == ROUNDS)                            \
            pthread_exit(NULL);                            \
        else

/* How often each thread enters, where that matters. */
#ifndef N
#define N 1
#endif

/* Release-acquire has no fence that orders a store before a load; the paper uses updates of one variable. */
#define FENCE() atomic_fetch_add(&fence, 0)

/* Every access is a release or an acquire under `ra`, whatever is written. */
typedef atomic_int shared;

static void run(int threads, void *(*const bodies[])(void *))
{
    pthread_t ids[threads];
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, bodies[i], (void *)(intptr_t)i);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
}
