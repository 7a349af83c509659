/* What the algorithms for mutual exclusion have in common: two threads, and a section that only one of them may
 * be in at a time. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static int inside;

static void critical_section(int me)
{
    inside = me;
    assert(inside == me);
}

static int run(void *(*enter)(void *))
{
    pthread_t one, two;
    pthread_create(&one, NULL, enter, (void *)0);
    pthread_create(&two, NULL, enter, (void *)1);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    return 0;
}
