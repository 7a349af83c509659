/*
 * Lamport's bakery: draw a number larger than all numbers in sight, be served in their order.
 *
 * Check:    selvedge verify examples/c/bakery.c
 * Expected: verified
 * Source:   L. Lamport, "A New Solution of Dijkstra's Concurrent Programming Problem",
 *           CACM 17(8), 1974.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif

static atomic_int choosing[THREADS];
static atomic_int number[THREADS];
static int counter;

static int draw_number(void)
{
    int max = 0;
    for (int i = 0; i < THREADS; i++) {
        int n = atomic_load(&number[i]);
        if (n > max)
            max = n;
    }
    return max + 1;
}

static int goes_first(int j, int n, int me, int mine)
{
    return n != 0 && (n < mine || (n == mine && j < me));
}

static void acquire(int me)
{
    atomic_store(&choosing[me], 1);
    int mine = draw_number();
    atomic_store(&number[me], mine);
    atomic_store(&choosing[me], 0);
    for (int j = 0; j < THREADS; j++) {
        if (j == me)
            continue;
        while (atomic_load(&choosing[j]))
            ;
        while (goes_first(j, atomic_load(&number[j]), me, mine))
            ;
    }
}

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    acquire(me);
    counter++;
    atomic_store(&number[me], 0);
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS);
    return 0;
}
