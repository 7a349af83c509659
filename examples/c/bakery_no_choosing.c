/*
 * The bakery without its `choosing` flags.
 *
 * Two threads draw the same number; the one with the lower index is late in writing it down, the
 * other one sees no number there and enters, and then the first one enters because ties are
 * decided in its favour.
 *
 * Check:    selvedge verify examples/c/bakery_no_choosing.c
 * Expected: bug, an assertion: two threads are inside
 * Source:   after L. Lamport, 1974
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

static atomic_int number[2];
static atomic_int inside;

static int goes_first(int j, int n, int me, int mine)
{
    return n != 0 && (n < mine || (n == mine && j < me));
}

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    int other = 1 - me;
    int mine = atomic_load(&number[other]) + 1;
    atomic_store(&number[me], mine);
    while (goes_first(other, atomic_load(&number[other]), me, mine))
        ;
    assert(atomic_fetch_add(&inside, 1) == 0);
    atomic_fetch_sub(&inside, 1);
    atomic_store(&number[me], 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (intptr_t i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
