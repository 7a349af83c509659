// executions: 3
// MP: all outcomes but the flag without the data.
#include "run.h"

static atomic_int data, flag;

BODY(sender)
{
    atomic_store(&data, 1);
    atomic_store(&flag, 1);
    return NULL;
}

BODY(receiver)
{
    int first = atomic_load(&flag);
    int second = atomic_load(&data);
    return first + second ? &flag : NULL;
}

RUN(sender, receiver)
