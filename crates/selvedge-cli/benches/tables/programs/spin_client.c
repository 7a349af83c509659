// Every thread takes a spin lock of one compare-exchange ROUNDS times.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

static atomic_int lock;

static void *worker(void *unused) {
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int free = 0;
        while (!atomic_compare_exchange_strong(&lock, &free, 1))
            free = 0;
        atomic_store(&lock, 0);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}
