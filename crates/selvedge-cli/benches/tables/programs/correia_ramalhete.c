/* The lock that is handed over (A. Correia, P. Ramalhete, "Mutual exclusion: two linear wait software solutions", 2015):
 * a thread whose left neighbours are out of it and whose right ones are not in it enters; whoever leaves hands the lock
 * over to one that waits. N threads enter once each. */
#include "rounds.h"

enum { OUT, WAITS, IN };

static shared state[N], mine[N], handing, inside, fence;

static void become(int me, int what)
{
    state[me] = what;
    FENCE();
}

static int left_is_out(int me)
{
    for (int i = 0; i < me; i++)
        if (state[i] != OUT)
            return 0;
    return 1;
}

static int right_is_not_in(int me)
{
    for (int i = me + 1; i < N; i++)
        if (state[i] == IN)
            return 0;
    return 1;
}

static void acquire(int me)
{
    WHILE (1) {
        WHILE (handing) {
            if (state[me] == OUT)
                become(me, WAITS);
            if (mine[me]) {
                mine[me] = 0;
                state[me] = IN;
                return;
            }
        }
        become(me, IN);
        if (!left_is_out(me)) {
            become(me, WAITS);
            WHILE (!handing && !left_is_out(me))
                ;
            continue;
        }
        WHILE (!handing) {
            if (right_is_not_in(me) && !handing)
                return;
        }
        become(me, WAITS);
    }
}

static void release(int me)
{
    for (int i = me + 1; i < me + N; i++) {
        int other = i % N;
        if (state[other] == WAITS) {
            if (!handing) {
                handing = 1;
                FENCE();
            }
            mine[other] = 1;
            become(me, OUT);
            return;
        }
    }
    if (handing) {
        handing = 0;
        FENCE();
    }
    become(me, OUT);
}

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg;
    acquire(me);
    inside = me;
    (void)inside;
    release(me);
    return NULL;
}

int main(void)
{
    void *(*bodies[N])(void *);
    for (int i = 0; i < N; i++)
        bodies[i] = enter;
    run(N, bodies);
    return 0;
}
