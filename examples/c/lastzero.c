/*
 * One thread looks for the last zero of an array while each of the others sets an element to one
 * more than the element before it.
 *
 * What the searcher reads steers how far it goes, so the executions differ in length.
 *
 * Check:    selvedge verify examples/c/lastzero.c
 * Expected: verified
 * Source:   P. Abdulla, S. Aronis, B. Jonsson, K. Sagonas, "Optimal Dynamic Partial Order
 *           Reduction", POPL 2014.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef WRITERS
#define WRITERS 5
#endif

static atomic_int array[WRITERS + 1];

static void *searcher(void *unused)
{
    (void)unused;
    int i = WRITERS;
    while (atomic_load(&array[i]) != 0)
        i--;
    assert(i >= 0);
    return NULL;
}

static void *writer(void *arg)
{
    intptr_t j = (intptr_t)arg;
    atomic_store(&array[j], atomic_load(&array[j - 1]) + 1);
    return NULL;
}

int main(void)
{
    pthread_t threads[WRITERS + 1];
    pthread_create(&threads[0], NULL, searcher, NULL);
    for (intptr_t j = 1; j <= WRITERS; j++)
        pthread_create(&threads[j], NULL, writer, (void *)j);
    for (int i = 0; i <= WRITERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
