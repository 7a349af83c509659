// A driver that is stopped while it works: whoever works counts itself in, and the one that stops the driver waits until nobody is
// in. The check whether the driver is being stopped comes too early.
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

static int pending = 1, stopping, stopped;

static void leave(void) {
    pending--;
    if (pending == 0)
        stopped = 1;
}

static void *worker(void *unused) {
    (void)unused;
    if (stopping)
        return NULL;
    pending++;
    assert(!stopped);
    leave();
    return NULL;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, worker, NULL);
    stopping = 1;
    leave();
    pthread_join(thread, NULL);
}
