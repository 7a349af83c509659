/*
 * A circular queue under one lock; what comes out keeps the order in which it went in.
 *
 * Check:    selvedge verify examples/c/queue_mutex.c
 * Expected: verified; C(2k, k) orders of the critical sections for k items, here C(8, 4) = 70
 * Source:   theme of SV-COMP's pthread/queue, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef ITEMS
#define ITEMS 4
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int queue[ITEMS];
static int first, length;

static void *producer(void *unused)
{
    (void)unused;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        queue[(first + length) % ITEMS] = i;
        length++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void *consumer(void *unused)
{
    (void)unused;
    int expected = 0;
    for (int i = 0; i < ITEMS; i++) {
        pthread_mutex_lock(&lock);
        if (length > 0) {
            assert(queue[first] == expected);
            expected++;
            first = (first + 1) % ITEMS;
            length--;
        }
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, producer, NULL);
    pthread_create(&threads[1], NULL, consumer, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
