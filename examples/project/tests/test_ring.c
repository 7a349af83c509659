/* What the producer puts in comes out in the same order. The argument is how many values it sends. */
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "ring.h"

static struct ring ring;
static int count;

static void *produce(void *unused) {
    for (int value = 1; value <= count; value++)
        ring_push(&ring, value);
    return unused;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: test_ring COUNT\n");
        return 2;
    }
    count = atoi(argv[1]);
    pthread_t producer;
    pthread_create(&producer, NULL, produce, NULL);
    int value, last = 0;
    for (int tries = 0; tries < count; tries++) {
        if (ring_pop(&ring, &value)) {
            assert(value == last + 1);
            last = value;
        }
    }
    pthread_join(producer, NULL);
    return 0;
}
