// Many threads store to one variable, one thread loads it once.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#ifndef WRITERS
#define WRITERS 3
#endif

static atomic_int shared;

static void *writer(void *number) {
    atomic_store_explicit(&shared, (int)(intptr_t)number, memory_order_release);
    return 0;
}

static void *reader(void *unused) {
    (void)unused;
    (void)atomic_load_explicit(&shared, memory_order_acquire);
    return 0;
}

int main(void) {
    pthread_t threads[WRITERS + 1];
    for (intptr_t i = 0; i < WRITERS; i++) {
        pthread_create(&threads[i], 0, writer, (void *)(i + 1));
    }
    pthread_create(&threads[WRITERS], 0, reader, 0);
    for (int i = 0; i <= WRITERS; i++) {
        pthread_join(threads[i], 0);
    }
}
