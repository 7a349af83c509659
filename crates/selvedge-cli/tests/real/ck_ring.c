/* Concurrency Kit's ring for one producer and one consumer. */
#include <assert.h>
#include <ck_ring.h>
#include <pthread.h>

static ck_ring_t ring;
static ck_ring_buffer_t buffer[4];
static int values[] = {1, 2};

static void *produce(void *unused) {
    ck_ring_enqueue_spsc(&ring, buffer, &values[0]);
    ck_ring_enqueue_spsc(&ring, buffer, &values[1]);
    return unused;
}

int main(void) {
    pthread_t producer;
    void *value;
    int last = 0;
    ck_ring_init(&ring, 4);
    pthread_create(&producer, 0, produce, 0);
    for (int i = 0; i < 2; i++) {
        if (ck_ring_dequeue_spsc(&ring, buffer, &value)) {
            assert(value && *(int *)value == last + 1);
            last = *(int *)value;
        }
    }
    return pthread_join(producer, 0);
}
