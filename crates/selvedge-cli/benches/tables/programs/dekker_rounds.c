/* Dekker's mutual exclusion for two threads, each of which enters N times. */
#include "rounds.h"

static shared flag[2], turn, inside, fence;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    for (int i = 0; i < N; i++) {
        flag[me] = 1;
        FENCE();
        WHILE (flag[other] >= 1) {
            if (turn != me) {
                flag[me] = 0;
                WHILE (turn != me)
                    ;
                flag[me] = 1;
                FENCE();
            }
        }
        inside = me;
        (void)inside;
        turn = other;
        flag[me] = 0;
    }
    return NULL;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){enter, enter});
    return 0;
}
