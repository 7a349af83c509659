/* Peterson's mutual exclusion; each thread enters once. */
#include "mutual.h"

static int flag[2], turn;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    flag[me] = 1;
    turn = other;
    while (flag[other] && turn == other)
        ;
    critical_section(me);
    flag[me] = 0;
    return NULL;
}

int main(void)
{
    return run(enter);
}
