/*
 * A flag that is set, and a condition that is signalled, without holding the mutex.
 *
 * The waiter sees the flag down, and before it has gone to sleep the flag goes up and the signal
 * is sent to nobody.
 *
 * Check:    selvedge verify examples/c/lost_wakeup.c
 * Expected: bug, a deadlock: the waiter sleeps for ever
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static atomic_int ready;

static void *waiter(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    while (!atomic_load(&ready))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    pthread_t t;
    pthread_create(&t, NULL, waiter, NULL);
    atomic_store(&ready, 1);
    pthread_cond_signal(&changed);
    pthread_join(t, NULL);
    return 0;
}
