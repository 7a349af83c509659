/*
 * Work stealing with the THE protocol of Cilk-5.
 *
 * The owner pops without a lock as long as head and tail are far apart and takes the lock only to
 * settle who gets the last task; thieves always lock.
 *
 * Check:    selvedge verify examples/c/the_deque.c
 * Expected: verified
 * Source:   M. Frigo, C. E. Leiserson, K. H. Randall, "The Implementation of the Cilk-5
 *           Multithreaded Language", PLDI 1998.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef TASKS
#define TASKS 2
#endif
#ifndef THIEVES
#define THIEVES 1
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int head, tail;
static int times_run[TASKS];

static int pop(void)
{
    int t = atomic_load(&tail) - 1;
    atomic_store(&tail, t);
    if (atomic_load(&head) <= t)
        return t;
    atomic_store(&tail, t + 1);
    pthread_mutex_lock(&lock);
    atomic_store(&tail, t);
    if (atomic_load(&head) > t) {
        atomic_store(&tail, t + 1);
        t = -1;
    }
    pthread_mutex_unlock(&lock);
    return t;
}

static int steal(void)
{
    pthread_mutex_lock(&lock);
    int h = atomic_load(&head);
    atomic_store(&head, h + 1);
    if (h + 1 > atomic_load(&tail)) {
        atomic_store(&head, h);
        h = -1;
    }
    pthread_mutex_unlock(&lock);
    return h;
}

static void *thief(void *unused)
{
    (void)unused;
    int task = steal();
    if (task >= 0)
        times_run[task]++;
    return NULL;
}

int main(void)
{
    pthread_t thieves[THIEVES];
    atomic_store(&tail, TASKS);
    for (int i = 0; i < THIEVES; i++)
        pthread_create(&thieves[i], NULL, thief, NULL);
    for (int task; (task = pop()) >= 0;)
        times_run[task]++;
    for (int i = 0; i < THIEVES; i++)
        pthread_join(thieves[i], NULL);
    for (int i = 0; i < TASKS; i++)
        assert(times_run[i] == 1);
    return 0;
}
