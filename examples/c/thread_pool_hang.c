/*
 * A thread pool that closes with a signal where it takes a broadcast.
 *
 * Check:    selvedge verify examples/c/thread_pool_hang.c
 * Expected: bug, a deadlock: only one of two sleeping workers learns that the pool has closed
 * Source:   folklore
 */
#include <pthread.h>
#include <stddef.h>

#ifndef WORKERS
#define WORKERS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int closed;

static void *worker(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!closed)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
