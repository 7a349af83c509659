/*
 * A consumer that waits with `if` instead of `while`.
 *
 * Between the signal and the moment the woken consumer has the mutex again, another consumer can
 * take the item.
 *
 * Check:    selvedge verify examples/c/producer_consumer_if.c
 * Expected: bug, an assertion: the woken consumer finds nothing
 * Source:   B. W. Lampson, D. D. Redell, "Experience with Processes and Monitors in Mesa",
 *           CACM 23(2), 1980, on why waiting takes a loop.
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef CONSUMERS
#define CONSUMERS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static int items;

static void *producer(void *unused)
{
    (void)unused;
    for (int i = 0; i < CONSUMERS; i++) {
        pthread_mutex_lock(&lock);
        items++;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consumer(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    if (items == 0)
        pthread_cond_wait(&not_empty, &lock);
    assert(items > 0);
    items--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t threads[CONSUMERS + 1];
    for (int i = 0; i < CONSUMERS; i++)
        pthread_create(&threads[i], NULL, consumer, NULL);
    pthread_create(&threads[CONSUMERS], NULL, producer, NULL);
    for (int i = 0; i <= CONSUMERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
