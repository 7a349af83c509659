/* A descriptor that another thread closes meanwhile. */
#include <assert.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
static int counter;
static void *closes(void *unused) { close(counter); return unused; }
int main(void) {
    pthread_t thread;
    eventfd_t value;
    counter = eventfd(1, 0);
    pthread_create(&thread, 0, closes, 0);
    assert(eventfd_read(counter, &value) == 0 && value == 1);
    pthread_join(thread, 0);
    return 0;
}
