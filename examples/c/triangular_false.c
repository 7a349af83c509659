/*
 * Two threads that keep setting their variable to one more than the other one's.
 *
 * The assertion forbids the largest value, which takes a context switch after every round.
 *
 * Check:    selvedge verify --plain sc examples/c/triangular_false.c
 * Expected: bug, an assertion: only perfect alternation reaches the value
 * Source:   theme of SV-COMP's pthread/triangular, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef ROUNDS
#define ROUNDS 4
#endif

enum { LARGEST = 2 * ROUNDS };

static int a, b;

static void *raises_a(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        a = b + 1;
    return NULL;
}

static void *raises_b(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++)
        b = a + 1;
    return NULL;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, raises_a, NULL);
    pthread_create(&threads[1], NULL, raises_b, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(a < LARGEST && b < LARGEST);
    return 0;
}
