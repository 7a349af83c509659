/* Concurrency Kit's queue for one producer and one consumer. */
#include <assert.h>
#include <ck_pr.h>
#ifdef WEAK
/* The entry is linked before its value is set. */
#undef ck_pr_fence_store
#define ck_pr_fence_store() (entry->value = 0)
#endif
#include <ck_fifo.h>
#include <pthread.h>

static ck_fifo_spsc_t fifo;
static ck_fifo_spsc_entry_t stub, entry;
static int number;

static void *produce(void *unused) {
    number = 1;
    ck_fifo_spsc_enqueue(&fifo, &entry, &number);
    return unused;
}

int main(void) {
    pthread_t producer;
    void *value;
    ck_fifo_spsc_init(&fifo, &stub);
    pthread_create(&producer, 0, produce, 0);
    if (ck_fifo_spsc_dequeue(&fifo, &value)) {
        assert(value && *(int *)value == 1);
    }
    return pthread_join(producer, 0);
}
