/*
 * Readers that become writers, one at a time under a second lock.
 *
 * The one that got the second lock waits until all readers have left; the other one is still a
 * reader and waits for the second lock.
 *
 * Check:    selvedge verify examples/c/readers_writers_upgrade.c
 * Expected: bug, a deadlock: each holds what the other one waits for
 * Source:   folklore
 */
#define _XOPEN_SOURCE 600
#include <pthread.h>
#include <stddef.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_mutex_t writers = PTHREAD_MUTEX_INITIALIZER;
static int value;

static void *reader(void *unused)
{
    (void)unused;
    pthread_rwlock_rdlock(&lock);
    int seen = value;
    pthread_mutex_lock(&writers);
    pthread_rwlock_unlock(&lock);
    pthread_rwlock_wrlock(&lock);
    value = seen + 1;
    pthread_rwlock_unlock(&lock);
    pthread_mutex_unlock(&writers);
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
