/* What the producer reads from its standard input comes out in the same order. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>

#include "ring.h"

static struct ring ring;

static void *produce(void *unused) {
    int value;
    while (scanf("%d", &value) == 1)
        ring_push(&ring, value);
    return unused;
}

int main(void) {
    pthread_t producer;
    pthread_create(&producer, NULL, produce, NULL);
    int value, last = 0;
    for (int tries = 0; tries < 2; tries++) {
        if (ring_pop(&ring, &value)) {
            assert(value > last);
            last = value;
        }
    }
    pthread_join(producer, NULL);
    return 0;
}
