/*
 * Threads that each need two buffers of a pool and take them one by one.
 *
 * Check:    selvedge verify examples/c/semaphore_deadlock.c
 * Expected: bug, a deadlock: everybody has one and waits for the second
 * Source:   E. W. Dijkstra, "Cooperating Sequential Processes", EWD 123, 1965 (the deadly embrace).
 */
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif

static sem_t available;

static void *worker(void *unused)
{
    (void)unused;
    sem_wait(&available);
    sem_wait(&available);
    sem_post(&available);
    sem_post(&available);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    sem_init(&available, 0, THREADS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&available);
    return 0;
}
