/*
 * Each thread claims a place in an array and marks it.
 *
 * The order of the fetch_adds decides everything: 4! = 24 executions.
 *
 * Check:    selvedge verify examples/c/sigma.c
 * Expected: verified
 * Source:   theme of SV-COMP's pthread/sigma, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 4
#endif

static atomic_int next;
static int marks[THREADS];

static void *worker(void *unused)
{
    (void)unused;
    marks[atomic_fetch_add(&next, 1)] = 1;
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int sum = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        sum += marks[i];
    assert(sum == THREADS);
    return 0;
}
