/*
 * Double-checked locking with a plain pointer.
 *
 * Check:    selvedge verify examples/c/double_checked_racy.c
 * Expected: bug, a data race on `instance`
 * Source:   D. Bacon et al., "The 'Double-Checked Locking is Broken' Declaration", 2000.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef THREADS
#define THREADS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int *instance;

static int *get(void)
{
    if (instance == NULL) {
        pthread_mutex_lock(&lock);
        if (instance == NULL) {
            int *made = malloc(sizeof *made);
            *made = 42;
            instance = made;
        }
        pthread_mutex_unlock(&lock);
    }
    return instance;
}

static void *worker(void *unused)
{
    (void)unused;
    get();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    free(instance);
    return 0;
}
