/* Dekker's mutual exclusion; each thread enters once. */
#include "mutual.h"

static int flag[2], turn;

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    flag[me] = 1;
    while (flag[other]) {
        if (turn != me) {
            flag[me] = 0;
            while (turn != me)
                ;
            flag[me] = 1;
        }
    }
    critical_section(me);
    turn = other;
    flag[me] = 0;
    return NULL;
}

int main(void)
{
    return run(enter);
}
