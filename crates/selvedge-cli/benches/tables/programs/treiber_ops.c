// A stack after Treiber: WRITERS threads put one node on it, READERS threads take one off.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef READERS
#define READERS 0
#endif

struct node {
    struct node *below;
};

static struct node nodes[WRITERS];
static _Atomic(struct node *) top;

static void *writer(void *number) {
    struct node *node = &nodes[(intptr_t)number];
    struct node *seen = atomic_load(&top);
    do {
        node->below = seen;
    } while (!atomic_compare_exchange_strong(&top, &seen, node));
    return NULL;
}

static void *reader(void *unused) {
    (void)unused;
    struct node *seen = atomic_load(&top);
    while (seen != NULL && !atomic_compare_exchange_strong(&top, &seen, seen->below))
        ;
    return NULL;
}

int main(void) {
    pthread_t threads[WRITERS + READERS];
    for (intptr_t i = 0; i < WRITERS + READERS; i++)
        pthread_create(&threads[i], NULL, i < WRITERS ? writer : reader, (void *)i);
    for (int i = 0; i < WRITERS + READERS; i++)
        pthread_join(threads[i], NULL);
}
