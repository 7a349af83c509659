/*
 * Hazard pointers: a reader announces the node it is about to use and looks again whether it is
 * still the current one; the updater frees the old node only if nobody announces it.
 *
 * Check:    selvedge verify examples/c/hazard_pointer.c
 * Expected: verified
 * Source:   M. M. Michael, "Hazard Pointers: Safe Memory Reclamation for Lock-Free Objects",
 *           IEEE TPDS 15(6), 2004.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#ifndef READERS
#define READERS 2
#endif

static _Atomic(int *) current;
static _Atomic(int *) hazard[READERS];
static int *retired;

static int *new_value(int value)
{
    int *p = malloc(sizeof *p);
    *p = value;
    return p;
}

static void *reader(void *arg)
{
    _Atomic(int *) *mine = &hazard[(intptr_t)arg];
    int *p;
    do {
        p = atomic_load(&current);
        atomic_store(mine, p);
    } while (atomic_load(&current) != p);
    assert(*p == 1 || *p == 2);
    atomic_store(mine, NULL);
    return NULL;
}

static void *updater(void *unused)
{
    (void)unused;
    int *old = atomic_exchange(&current, new_value(2));
    for (int i = 0; i < READERS; i++) {
        if (atomic_load(&hazard[i]) == old) {
            retired = old;
            return NULL;
        }
    }
    free(old);
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    atomic_store(&current, new_value(1));
    for (intptr_t i = 0; i < READERS; i++)
        pthread_create(&threads[i], NULL, reader, (void *)i);
    pthread_create(&threads[READERS], NULL, updater, NULL);
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
    free(retired);
    free(atomic_load(&current));
    return 0;
}
