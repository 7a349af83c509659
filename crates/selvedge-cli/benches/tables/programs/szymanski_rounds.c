/* Szymanski's mutual exclusion for two threads, each of which enters N times. */
#include "rounds.h"

static shared flag[2], inside, fence;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    for (int i = 0; i < N; i++) {
        flag[me] = 1;
        FENCE();
        WHILE (flag[other] >= 3)
            ;
        flag[me] = 3;
        FENCE();
        if (flag[other] == 1) {
            flag[me] = 2;
            FENCE();
            WHILE (flag[other] != 4)
                ;
        }
        flag[me] = 4;
        FENCE();
        WHILE (flag[other] >= 2)
            ;
        inside = me;
        (void)inside;
        WHILE (2 <= flag[other] && flag[other] <= 3)
            ;
        flag[me] = 0;
    }
    return NULL;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){enter, enter});
    return 0;
}
