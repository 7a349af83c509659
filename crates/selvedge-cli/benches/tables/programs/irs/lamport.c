/* Lamport's fast mutual exclusion; each thread enters once. */
#include "mutual.h"

static int x, y, busy[2];

static void *enter(void *arg)
{
    int me = (int)(intptr_t)arg, other = 1 - me;
    for (;;) {
        busy[me] = 1;
        x = me + 1;
        if (y != 0) {
            busy[me] = 0;
            while (y != 0)
                ;
            continue;
        }
        y = me + 1;
        if (x != me + 1) {
            busy[me] = 0;
            while (busy[other])
                ;
            if (y != me + 1) {
                while (y != 0)
                    ;
                continue;
            }
        }
        break;
    }
    critical_section(me);
    y = 0;
    busy[me] = 0;
    return NULL;
}

int main(void)
{
    return run(enter);
}
