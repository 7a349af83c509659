/*
 * pthread_once: the routine runs once, and everybody sees what it did.
 *
 * The thread that begins the routine is the only choice there is; the others come when it is done
 * and only read. With three threads: 3 executions.
 *
 * Check:    selvedge verify examples/c/once_init.c
 * Expected: verified
 * Source:   POSIX.1c, 1995
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int table;

static void initialise(void)
{
    table++;
}

static void *worker(void *unused)
{
    (void)unused;
    pthread_once(&once, initialise);
    assert(table == 1);
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
