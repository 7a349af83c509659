// Threads that all look for a free slot of a table from its beginning: N! executions.
#include "local.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef N
#define N 5
#endif

static atomic_int table[N];

static void *inserts(void *number) {
    (void)number;
    LOCAL_STEP((intptr_t)number);
    int slot = 0, empty = 0;
    while (!atomic_compare_exchange_strong(&table[slot], &empty, 1)) {
        slot++;
        empty = 0;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[N];
    for (intptr_t i = 0; i < N; i++) {
        pthread_create(&threads[i], NULL, inserts, (void *)i);
    }
    return 0;
}
