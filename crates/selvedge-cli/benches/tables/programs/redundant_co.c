/* Two threads store to one variable N times each, one thread loads it twice. */
#include "rounds.h"

static shared x;

static void *writer(void *unused)
{
    for (int i = 0; i < N; i++)
        x = 1;
    return unused;
}

static void *reader(void *unused)
{
    (void)x;
    (void)x;
    return unused;
}

int main(void)
{
    run(3, (void *(*const[])(void *)){writer, writer, reader});
    return 0;
}
