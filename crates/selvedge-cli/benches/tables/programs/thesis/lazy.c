// Two threads add to a number and one looks at it, under one lock; main waits for them.
#include "local.h"
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int data;

static void *adds(void *amount) {
    LOCAL_STEP((intptr_t)amount);
    pthread_mutex_lock(&lock);
    data += (int)(intptr_t)amount;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *looks(void *unused) {
    (void)unused;
    LOCAL_STEP(0);
    pthread_mutex_lock(&lock);
    (void)(data >= 3);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    pthread_t threads[3];
    pthread_create(&threads[0], NULL, looks, NULL);
    pthread_create(&threads[1], NULL, adds, (void *)1);
    pthread_create(&threads[2], NULL, adds, (void *)2);
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
    return 0;
}
