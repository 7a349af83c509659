/*
 * A test-and-set lock whose test and set are two separate steps.
 *
 * Both threads can see the lock free before either takes it; then both are in the critical
 * section, and nothing orders their increments of the counter.
 *
 * Check:    selvedge verify examples/c/ttas_lock_racy.c
 * Expected: bug, a data race on `counter`
 * Source:   folklore
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int lock;
static int counter;

static void *worker(void *unused)
{
    (void)unused;
    while (atomic_load(&lock))
        ;
    atomic_store(&lock, 1);
    counter++;
    atomic_store(&lock, 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
