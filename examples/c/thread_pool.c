/*
 * A thread pool: workers take tasks from a list and leave when it is empty and closed.
 *
 * Check:    selvedge verify examples/c/thread_pool.c
 * Expected: verified
 * Source:   folklore
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef TASKS
#define TASKS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int submitted, started, closed;
static int times_run[TASKS];

static int next_task(void)
{
    int task = -1;
    pthread_mutex_lock(&lock);
    while (started == submitted && !closed)
        pthread_cond_wait(&changed, &lock);
    if (started < submitted)
        task = started++;
    pthread_mutex_unlock(&lock);
    return task;
}

static void *worker(void *unused)
{
    (void)unused;
    for (int task; (task = next_task()) >= 0;)
        times_run[task]++;
    return NULL;
}

int main(void)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < TASKS; i++) {
        pthread_mutex_lock(&lock);
        submitted++;
        pthread_cond_signal(&changed);
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_lock(&lock);
    closed = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < TASKS; i++)
        assert(times_run[i] == 1);
    return 0;
}
