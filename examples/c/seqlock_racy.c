/*
 * A sequence lock around plain data.
 *
 * The reader throws a torn value away, but to have read it is already a data race: the language
 * gives such a program no meaning, and compilers may use that.
 *
 * Check:    selvedge verify examples/c/seqlock_racy.c
 * Expected: bug, a data race on `data`
 * Source:   after H.-J. Boehm, 2012
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint sequence;
static int data;

static void *writer(void *unused)
{
    (void)unused;
    atomic_store(&sequence, 1);
    data = 1;
    atomic_store(&sequence, 2);
    return NULL;
}

static void *reader(void *result)
{
    unsigned before;
    do {
        while ((before = atomic_load(&sequence)) % 2 != 0)
            ;
        *(int *)result = data;
    } while (atomic_load(&sequence) != before);
    return NULL;
}

int main(void)
{
    int result;
    pthread_t w, r;
    pthread_create(&w, NULL, writer, NULL);
    pthread_create(&r, NULL, reader, &result);
    pthread_join(w, NULL);
    pthread_join(r, NULL);
    return 0;
}
