/*
 * Threads that insert into a hash table by compare-exchange, probing on when a slot is taken.
 *
 * Up to eleven threads never meet. The twelfth and each one after it collide with an earlier one
 * on three slots, and only the order at each of these matters: 8 executions for twelve threads, 64
 * for thirteen, 512 for fourteen.
 *
 * Check:    selvedge verify examples/c/indexer.c
 * Expected: verified
 * Source:   C. Flanagan, P. Godefroid, "Dynamic Partial-Order Reduction for Model Checking
 *           Software", POPL 2005.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 13
#endif

enum { SLOTS = 128, MESSAGES = 4 };

static atomic_int table[SLOTS];

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    for (int m = 1; m <= MESSAGES; m++) {
        int message = m * 11 + me;
        int slot = message * 7 % SLOTS;
        int empty = 0;
        while (!atomic_compare_exchange_strong(&table[slot], &empty, message)) {
            slot = (slot + 1) % SLOTS;
            empty = 0;
        }
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    int used = 0;
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < SLOTS; i++)
        used += atomic_load(&table[i]) != 0;
    assert(used == THREADS * MESSAGES);
    return 0;
}
