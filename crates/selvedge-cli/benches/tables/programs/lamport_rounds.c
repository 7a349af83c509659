/* Lamport's fast mutual exclusion for two threads, each of which enters N times. */
#include "rounds.h"

static shared x, y, busy[2], inside, fence;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg + 1;
    shared *mine = &busy[me - 1], *others = &busy[2 - me];
    for (int i = 0; i < N; i++) {
        WHILE (1) {
            *mine = 1;
            FENCE();
            x = me;
            FENCE();
            if (y != 0) {
                *mine = 0;
                WHILE (y != 0)
                    ;
                continue;
            }
            y = me;
            FENCE();
            if (x != me) {
                *mine = 0;
                WHILE (*others >= 1)
                    ;
                if (y != me) {
                    WHILE (y != 0)
                        ;
                    continue;
                }
            }
            break;
        }
        inside = me;
        (void)inside;
        y = 0;
        *mine = 0;
    }
    return NULL;
}

int main(void)
{
    run(2, (void *(*const[])(void *)){enter, enter});
    return 0;
}
