// Threads that insert four numbers each into a hash table. The twelfth is the first to meet another.
#include "local.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef N
#define N 12
#endif

enum { SLOTS = 128, NUMBERS = 4 };

static atomic_int table[SLOTS];

static void *inserts(void *argument) {
    int me = (int)(intptr_t)argument;
    LOCAL_STEP(me);
    for (int i = 0; i < NUMBERS; i++) {
        int number = i * 11 + me;
        int slot = number * 7 % SLOTS;
        int empty = 0;
        while (!atomic_compare_exchange_strong(&table[slot], &empty, number)) {
            slot = (slot + 1) % SLOTS;
            empty = 0;
        }
    }
    return NULL;
}

int main(void) {
    pthread_t threads[N];
    for (intptr_t i = 0; i < N; i++) {
        pthread_create(&threads[i], NULL, inserts, (void *)i);
    }
#ifndef WITHOUT_JOINS
    for (int i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
    }
#endif
    return 0;
}
