// One thread writes a variable, N others read it once: 2^N executions.
#include "local.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#ifndef N
#define N 2
#endif

static volatile int shared;

static void *writes(void *unused) {
    (void)unused;
    LOCAL_STEP(0);
    shared = 2;
    return NULL;
}

static void *reads(void *number) {
    (void)number;
    LOCAL_STEP((intptr_t)number);
    (void)shared;
    return NULL;
}

int main(void) {
    pthread_t threads[N + 1];
    pthread_create(&threads[0], NULL, writes, NULL);
    for (intptr_t i = 1; i <= N; i++) {
        pthread_create(&threads[i], NULL, reads, (void *)i);
    }
    return 0;
}
