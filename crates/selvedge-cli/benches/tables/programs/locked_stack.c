// Every thread puts OPERATIONS nodes on a stack that a mutex protects.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef OPERATIONS
#define OPERATIONS 2
#endif

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int stack[THREADS * OPERATIONS], height;

static void *worker(void *unused) {
    (void)unused;
    for (int i = 0; i < OPERATIONS; i++) {
        pthread_mutex_lock(&lock);
        stack[height++] = i;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(height == THREADS * OPERATIONS);
}
