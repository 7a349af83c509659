/* N readers of x, N writers of y, one thread that writes z if y is 0, and one that writes x if z is 1 and then
 * y is 0. */
#include "rounds.h"

static shared x, y, z;

static void *reads_x(void *unused)
{
    (void)x;
    return unused;
}

static void *writes_y(void *unused)
{
    y = 1;
    return unused;
}

static void *writes_z(void *unused)
{
    if (y == 0)
        z = 1;
    return unused;
}

static void *writes_x(void *unused)
{
    if (z == 1)
        if (y == 0)
            x = 1;
    return unused;
}

int main(void)
{
    void *(*bodies[2 * N + 2])(void *);
    for (int i = 0; i < N; i++) {
        bodies[i] = reads_x;
        bodies[N + i] = writes_y;
    }
    bodies[2 * N] = writes_z;
    bodies[2 * N + 1] = writes_x;
    run(2 * N + 2, bodies);
    return 0;
}
