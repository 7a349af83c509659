/*
 * Dining philosophers who all reach for the left fork first.
 *
 * Check:    selvedge verify examples/c/philosophers.c
 * Expected: bug, a deadlock: everybody holds one fork and waits for the other
 * Source:   E. W. Dijkstra, "Hierarchical Ordering of Sequential Processes", EWD 310, 1971.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 3
#endif

static pthread_mutex_t forks[THREADS];
static int meals[THREADS];

static void *philosopher(void *arg)
{
    int me = (int)(intptr_t)arg;
    pthread_mutex_t *left = &forks[me];
    pthread_mutex_t *right = &forks[(me + 1) % THREADS];
    pthread_mutex_lock(left);
    pthread_mutex_lock(right);
    meals[me]++;
    pthread_mutex_unlock(right);
    pthread_mutex_unlock(left);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_mutex_init(&forks[i], NULL);
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, philosopher, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
