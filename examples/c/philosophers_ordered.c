/*
 * Dining philosophers who reach for the lower-numbered fork first.
 *
 * Nobody releases a fork before having both, so every execution is a serial one up to equivalence:
 * an order of each pair that shares a fork, without a cycle. With three philosophers every pair
 * shares one, so there are 2^3 - 2 = 6 executions.
 *
 * Check:    selvedge verify examples/c/philosophers_ordered.c
 * Expected: verified
 * Source:   E. W. Dijkstra, "Hierarchical Ordering of Sequential Processes", EWD 310, 1971.
 */
#include <assert.h>
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
    int left = me, right = (me + 1) % THREADS;
    pthread_mutex_t *first = &forks[left < right ? left : right];
    pthread_mutex_t *second = &forks[left < right ? right : left];
    pthread_mutex_lock(first);
    pthread_mutex_lock(second);
    meals[me]++;
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
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
    for (int i = 0; i < THREADS; i++)
        assert(meals[i] == 1);
    return 0;
}
