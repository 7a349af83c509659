// Threads hand a number on, each one more than it got, but nobody makes sure that they come in turn.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int x1 = 1, x2 = 2, x3 = 1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *first(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    x1 = (x3 + 1) % 4;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *second(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    x2 = x1;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *third(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    x3 = x2;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *check(void *unused) {
    (void)unused;
    pthread_mutex_lock(&lock);
    assert(x1 == x2 && x2 == x3);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void) {
    void *(*const bodies[4])(void *) = {first, second, third, check};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, bodies[i], NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}
