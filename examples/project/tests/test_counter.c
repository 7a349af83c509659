/* No increment is lost. */
#include <assert.h>
#include <pthread.h>

#include "counter.h"

static struct counter counter = {.lock = {ATOMIC_FLAG_INIT}};

static void *add(void *unused) {
    counter_add(&counter, 1);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(counter_read(&counter) == 2);
    return 0;
}
