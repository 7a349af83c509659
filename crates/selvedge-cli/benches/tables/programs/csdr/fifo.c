/* A queue between two threads: chunks in a list, the writer at one end, the reader at the other, no lock.
 *
 * -DITEMS=12    how many items pass through
 * -DCHUNK=2     how many fit into a chunk
 * -DBUG         the writer moves on to a new chunk before it has linked it to the old one; a reader that sees
 *               that it has moved on looks for a chunk that is not there yet */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#ifndef ITEMS
#define ITEMS 12
#endif
#ifndef CHUNK
#define CHUNK 2
#endif

struct chunk {
    _Atomic(struct chunk *) next;
    atomic_int written;
    int taken;
    int items[CHUNK];
};

static struct chunk *head;
static _Atomic(struct chunk *) tail;

static struct chunk *fresh(void) {
    struct chunk *chunk = malloc(sizeof *chunk);
    atomic_init(&chunk->next, NULL);
    atomic_init(&chunk->written, 0);
    chunk->taken = 0;
    return chunk;
}

static void push(int item) {
    struct chunk *last = atomic_load(&tail);
    int written = atomic_load(&last->written);
    if (written == CHUNK) {
        struct chunk *chunk = fresh();
#ifdef BUG
        atomic_store(&tail, chunk);
        atomic_store(&last->next, chunk);
#else
        atomic_store(&last->next, chunk);
        atomic_store(&tail, chunk);
#endif
        last = chunk;
        written = 0;
    }
    last->items[written] = item;
    atomic_store(&last->written, written + 1);
}

static int is_empty(void) {
    return head == atomic_load(&tail) && head->taken >= atomic_load(&head->written);
}

static int pop(void) {
    if (head->taken == CHUNK) {
        head = atomic_load(&head->next);
        assert(head != NULL);
    }
    while (head->taken == atomic_load(&head->written))
        ;
    return head->items[head->taken++];
}

static void *write_all(void *unused) {
    for (int i = 1; i <= ITEMS; i++)
        push(i);
    return unused;
}

static void *read_all(void *unused) {
    for (int i = 1; i <= ITEMS; i++) {
        while (is_empty())
            ;
        int item = pop();
        assert(item == i);
    }
    return unused;
}

int main(void) {
    struct chunk *first = fresh();
    head = first;
    atomic_init(&tail, first);
    pthread_t writer, reader;
    pthread_create(&writer, NULL, write_all, NULL);
    pthread_create(&reader, NULL, read_all, NULL);
    pthread_join(writer, NULL);
    pthread_join(reader, NULL);
    /* Chunks stay until the end: a heap that uses memory again gives the same queue many addresses. */
    while (first != NULL) {
        struct chunk *next = atomic_load(&first->next);
        free(first);
        first = next;
    }
    return 0;
}
