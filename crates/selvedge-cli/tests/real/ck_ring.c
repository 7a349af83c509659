/* Concurrency Kit's ring: one producer and one consumer, or two producers if TWO is defined. */
#include <assert.h>
#include <ck_pr.h>
#ifdef WEAK
/* The exchange of the ring for several producers, without its lock prefix. */
#define ck_pr_cas_uint_value(target, expected, new, seen) \
    (*(seen) = ck_pr_load_uint(target), *(seen) == (expected) && (ck_pr_store_uint(target, new), true))
#endif
#include <ck_ring.h>
#include <pthread.h>

static ck_ring_t ring;
static ck_ring_buffer_t buffer[4];
static int values[] = {1, 2};

#ifdef TWO
static void *produce(void *value) {
    ck_ring_enqueue_mpsc(&ring, buffer, value);
    return 0;
}

int main(void) {
    pthread_t producer;
    void *value;
    int sum = 0;
    ck_ring_init(&ring, 4);
    pthread_create(&producer, 0, produce, &values[0]);
    produce(&values[1]);
    if (ck_ring_dequeue_mpsc(&ring, buffer, &value)) {
        sum += *(int *)value;
    }
    pthread_join(producer, 0);
    while (ck_ring_dequeue_mpsc(&ring, buffer, &value)) {
        sum += *(int *)value;
    }
    assert(sum == 3);
    return 0;
}
#else
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
#endif
