/*
 * A table that counts an entry before its pointer is in place.
 *
 * Check:    selvedge verify examples/c/publish_too_early.c
 * Expected: bug, a null dereference in the reader
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static int value = 42;
static atomic_int entries;
static _Atomic(int *) table[1];

static void *writer(void *unused)
{
    (void)unused;
    atomic_store(&entries, 1);
    atomic_store(&table[0], &value);
    return NULL;
}

static void *reader(void *result)
{
    if (atomic_load(&entries) > 0)
        *(int *)result = *atomic_load(&table[0]);
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
