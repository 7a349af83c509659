/*
 * Readers and a writer around a pthread_rwlock_t.
 *
 * Check:    selvedge verify examples/c/readers_writers.c
 * Expected: verified
 * Source:   P. J. Courtois, F. Heymans, D. L. Parnas, "Concurrent Control with Readers and
 *           Writers", CACM 14(10), 1971.
 */
#define _XOPEN_SOURCE 600
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int left, right;

static void *reader(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&lock);
    assert(left == right);
    pthread_rwlock_unlock(&lock);
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    pthread_rwlock_wrlock(&lock);
    left++;
    right++;
    pthread_rwlock_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + WRITERS];
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_create(&threads[i], NULL, i < READERS ? reader : writer, NULL);
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert(left == WRITERS && right == WRITERS);
    return 0;
}
