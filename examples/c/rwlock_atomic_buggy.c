/*
 * A read-write lock whose reader looks for a writer before it counts itself in.
 *
 * A writer can come in between: reader and writer are inside together.
 *
 * Check:    selvedge verify examples/c/rwlock_atomic_buggy.c
 * Expected: bug, a data race between the writer's and the reader's accesses to `data`
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int readers;
static atomic_int writing;
static int data;

static void *reader(void *result)
{
    while (atomic_load(&writing))
        ;
    atomic_fetch_add(&readers, 1);
    *(int *)result = data;
    atomic_fetch_sub(&readers, 1);
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    atomic_store(&writing, 1);
    while (atomic_load(&readers) != 0)
        ;
    data = 42;
    atomic_store(&writing, 0);
    return NULL;
}

int main(void)
{
    int seen = 0;
    pthread_t r, w;
    pthread_create(&r, NULL, reader, &seen);
    pthread_create(&w, NULL, writer, NULL);
    pthread_join(r, NULL);
    pthread_join(w, NULL);
    return 0;
}
