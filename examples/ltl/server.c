/*
 * A server that grants what two clients ask for, one after the other. With -DLATE it forgets a request that comes
 * between its answer and the moment when it takes the old request away.
 *
 *     selvedge verify examples/ltl/server.c --ltl 'G ({request == 1} -> F {granted == 1})' --fair
 *                                                                                          verified
 *     selvedge verify examples/ltl/server.c --ltl 'G ({request == 1} -> F {granted == 1})' --fair -- -DLATE
 *                                                                                          a bug
 */
#include <pthread.h>
#include <stdatomic.h>

static atomic_int request, granted;

static void *client(void *argument)
{
    for (int own = argument ? 2 : 1;;) {
        int none = 0;
        if (!atomic_compare_exchange_strong(&request, &none, own))
            continue;
        while (granted != own) {
        }
        granted = 0;
    }
    return 0;
}

static void serve(void)
{
    for (;;) {
        int asked = request;
        if (asked == 0 || granted != 0)
            continue;
#ifdef LATE
        granted = asked;
        request = 0;
#else
        request = 0;
        granted = asked;
#endif
    }
}

int main(void)
{
    static pthread_t clients[2];
    pthread_create(&clients[0], 0, client, 0);
    pthread_create(&clients[1], 0, client, (void *)1);
    serve();
}
