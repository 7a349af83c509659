// Three threads that increment a plain number twice and look at it.
#include "local.h"
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static int x;

static void *increments(void *number) {
    (void)number;
    LOCAL_STEP((intptr_t)number);
    x++;
    x++;
    assert(0 < x);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++) {
        pthread_create(&threads[i], NULL, increments, (void *)i);
    }
    return 0;
}
