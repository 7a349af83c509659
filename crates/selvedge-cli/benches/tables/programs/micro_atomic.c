/* N threads that increment a variable twice, not atomically, and look at it. */
#include "rounds.h"

static shared x;

static void *worker(void *unused)
{
    for (int i = 0; i < 2; i++) {
        int seen = x;
        x = seen + 1;
    }
    (void)x;
    return unused;
}

int main(void)
{
    void *(*bodies[N])(void *);
    for (int i = 0; i < N; i++)
        bodies[i] = worker;
    run(N, bodies);
    return 0;
}
