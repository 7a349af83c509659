// One thread protects a variable with one mutex, OTHERS threads with another: an addition is lost.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef OTHERS
#define OTHERS 3
#endif

static pthread_mutex_t right = PTHREAD_MUTEX_INITIALIZER, wrong = PTHREAD_MUTEX_INITIALIZER;
static int data;

static void *careful(void *unused) {
    (void)unused;
    pthread_mutex_lock(&right);
    int seen = data;
    data = seen + 1;
    assert(data == seen + 1);
    pthread_mutex_unlock(&right);
    return NULL;
}

static void *careless(void *unused) {
    (void)unused;
    pthread_mutex_lock(&wrong);
    data = data + 1;
    pthread_mutex_unlock(&wrong);
    return NULL;
}

int main(void) {
    pthread_t threads[OTHERS + 1];
    for (int i = 0; i <= OTHERS; i++)
        pthread_create(&threads[i], NULL, i == 0 ? careful : careless, NULL);
    for (int i = 0; i <= OTHERS; i++)
        pthread_join(threads[i], NULL);
}
