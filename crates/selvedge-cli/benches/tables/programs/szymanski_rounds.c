/* Szymanski's mutual exclusion for two threads, each of which enters once. */
#include "rounds.h"

static shared flag[2], inside;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    flag[me] = 1;
    WHILE (flag[other] >= 3)
        ;
    flag[me] = 3;
    if (flag[other] == 1) {
        flag[me] = 2;
        WHILE (flag[other] != 4)
            ;
    }
    flag[me] = 4;
    WHILE (flag[other] >= 2)
        ;
    inside = me;
    WHILE (2 <= flag[other] && flag[other] <= 3)
        ;
    flag[me] = 0;
    return NULL;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){enter, enter});
    return 0;
}
