/* The reader-writer lock of Linux: N threads that write once each. */
#include "rounds.h"

enum { BIAS = 0x100000 };

static shared lock = BIAS, data;

static void *writer(void *unused)
{
    int prior = atomic_fetch_sub(&lock, BIAS);
    WHILE (prior != BIAS) {
        atomic_fetch_add(&lock, BIAS);
        WHILE (lock != BIAS)
            ;
        prior = atomic_fetch_sub(&lock, BIAS);
    }
    data = 1;
    atomic_fetch_add(&lock, BIAS);
    return unused;
}

int main(void)
{
    void *(*bodies[N])(void *);
    for (int i = 0; i < N; i++)
        bodies[i] = writer;
    run(N, bodies);
    return 0;
}
