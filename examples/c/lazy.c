/*
 * Three threads under one lock: one adds 1, one adds 2, one complains when it sees both.
 *
 * The executions are the orders of three critical sections, 3! = 6; in two of them the third
 * thread comes last.
 *
 * Check:    selvedge verify examples/c/lazy.c
 * Expected: bug, an assertion: the checker ran after both others
 * Source:   theme of SV-COMP's pthread/lazy01, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int data;

static void *adds_one(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    data += 1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *adds_two(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    data += 2;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *checks(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    assert(data < 3);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    void *(*const bodies[3])(void *) = {adds_one, adds_two, checks};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
