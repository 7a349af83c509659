/*
 * A pool of buffers behind a counting semaphore: whoever passes it finds a free buffer.
 *
 * Check:    selvedge verify examples/c/semaphore_pool.c
 * Expected: verified
 * Source:   E. W. Dijkstra, "Cooperating Sequential Processes", EWD 123, 1965.
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif
#ifndef BUFFERS
#define BUFFERS 2
#endif

static sem_t available;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int in_use[BUFFERS];
static int buffers[BUFFERS];

static int take(void)
{
    int i = 0;
    sem_wait(&available);
    pthread_mutex_lock(&lock);
    while (i < BUFFERS && in_use[i])
        i++;
    assert(i < BUFFERS);
    in_use[i] = 1;
    pthread_mutex_unlock(&lock);
    return i;
}

static void give_back(int i)
{
    pthread_mutex_lock(&lock);
    in_use[i] = 0;
    pthread_mutex_unlock(&lock);
    sem_post(&available);
}

static void *worker(void *unused)
{
    (void)unused;
    int i = take();
    buffers[i]++;
    give_back(i);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int uses = 0;
    sem_init(&available, 0, BUFFERS);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < BUFFERS; i++)
        uses += buffers[i];
    assert(uses == THREADS);
    sem_destroy(&available);
    return 0;
}
