/*
 * A statistics counter that is skipped when somebody else is at it: pthread_mutex_trylock.
 *
 * Check:    selvedge verify examples/c/trylock_statistics.c
 * Expected: verified
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int counted;
static atomic_int skipped;

static void *worker(void *unused)
{
    (void)unused;
    if (pthread_mutex_trylock(&lock) == 0) {
        counted++;
        pthread_mutex_unlock(&lock);
    } else {
        atomic_fetch_add_explicit(&skipped, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counted >= 1 && counted + atomic_load(&skipped) == THREADS);
    return 0;
}
