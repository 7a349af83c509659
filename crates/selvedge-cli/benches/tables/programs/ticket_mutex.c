/* Three threads that pass through a ticket lock once each. */
#include "rounds.h"

static shared ingress, egress;

static void *enter(void *unused)
{
    int ticket = atomic_fetch_add(&ingress, 1);
    WHILE (ticket != egress)
        ;
    int served = egress;
    egress = served + 1;
    return unused;
}

int main(void)
{
    run(3, (void *(*const[])(void *)){enter, enter, enter});
    return 0;
}
