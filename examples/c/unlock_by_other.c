/*
 * A mutex used as a signal: one thread locks it, another one unlocks it.
 *
 * Check:    selvedge verify examples/c/unlock_by_other.c
 * Expected: bug, object misuse: the unlocking thread does not hold the mutex
 * Source:   folklore
 */
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;

static void *opener(void *unused)
{
    (void)unused;
    pthread_mutex_unlock(&door);
    return NULL;
}

int main(void)
{
    pthread_t t;
    pthread_mutex_lock(&door);
    pthread_create(&t, NULL, opener, NULL);
    pthread_mutex_lock(&door);
    pthread_join(t, NULL);
    return 0;
}
