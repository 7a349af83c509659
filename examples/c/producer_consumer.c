/*
 * A bounded buffer with a mutex and two condition variables.
 *
 * Check:    selvedge verify examples/c/producer_consumer.c
 * Expected: verified
 * Source:   C. A. R. Hoare, "Monitors: An Operating System Structuring Concept", CACM 17(10), 1974.
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef CAPACITY
#define CAPACITY 1
#endif
#ifndef ITEMS
#define ITEMS 3
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t not_full = PTHREAD_COND_INITIALIZER;
static int buffer[CAPACITY];
static int written, taken;

static void *producer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (written - taken == CAPACITY)
            pthread_cond_wait(&not_full, &lock);
        buffer[written++ % CAPACITY] = i;
        pthread_cond_signal(&not_empty);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consumer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        while (written == taken)
            pthread_cond_wait(&not_empty, &lock);
        assert(buffer[taken++ % CAPACITY] == i);
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t p, c;
    pthread_create(&p, NULL, producer, NULL);
    pthread_create(&c, NULL, consumer, NULL);
    pthread_join(p, NULL);
    pthread_join(c, NULL);
    return 0;
}
