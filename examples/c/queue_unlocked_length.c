/*
 * A queue whose consumer peeks at the length without the lock.
 *
 * Check:    selvedge verify examples/c/queue_unlocked_length.c
 * Expected: bug, a data race on `length`
 * Source:   theme of SV-COMP's pthread/queue, written anew
 */
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int length;

static void *producer(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    length++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *consumer(void *unused)
{
    (void)unused;
    if (length > 0) {
        pthread_mutex_lock(&lock);
        length--;
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
