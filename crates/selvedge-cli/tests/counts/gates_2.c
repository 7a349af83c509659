// executions: 2
// blocked: 0
// Two gates that open in either order, and a thread that waits for both at once.
#include "run.h"

static atomic_int first, second, order;

BODY(one)
{
    atomic_fetch_add(&order, 1);
    atomic_store(&first, 1);
    return NULL;
}

BODY(other)
{
    atomic_fetch_add(&order, 1);
    atomic_store(&second, 1);
    return NULL;
}

BODY(waiter)
{
    while (!atomic_load(&first) || !atomic_load(&second))
        ;
    return NULL;
}

RUN(waiter, one, other)
