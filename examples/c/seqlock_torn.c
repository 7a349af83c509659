/*
 * A sequence lock whose reader forgets to look at the counter again.
 *
 * Check:    selvedge verify examples/c/seqlock_torn.c
 * Expected: bug, an assertion: the two halves do not belong together
 * Source:   after H.-J. Boehm, 2012
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint sequence;
static atomic_int left, right;

static void *writer(void *unused)
{
    (void)unused;
    atomic_store(&sequence, 1);
    atomic_store(&left, 1);
    atomic_store(&right, 1);
    atomic_store(&sequence, 2);
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    while (atomic_load(&sequence) % 2 != 0)
        ;
    int l = atomic_load(&left);
    int r = atomic_load(&right);
    assert(l == r);
    return NULL;
}

int main(void)
{
    pthread_t w, r;
    pthread_create(&w, NULL, writer, NULL);
    pthread_create(&r, NULL, reader, NULL);
    pthread_join(w, NULL);
    pthread_join(r, NULL);
    return 0;
}
