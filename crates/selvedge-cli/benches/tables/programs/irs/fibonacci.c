/* Two threads that keep adding the other one's number to their own; neither gets further than in turns. */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#ifndef ROUNDS
#define ROUNDS 3
#endif

static int a = 1, b = 1;

static void *adds_to_a(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        a += b;
    return unused;
}

static void *adds_to_b(void *unused)
{
    for (int i = 0; i < ROUNDS; i++)
        b += a;
    return unused;
}

int main(void)
{
    int before = 1, largest = 1;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        int next = before + largest;
        before = largest;
        largest = next;
    }
    pthread_t one, two;
    pthread_create(&one, NULL, adds_to_a, NULL);
    pthread_create(&two, NULL, adds_to_b, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(a <= largest && b <= largest);
    return 0;
}
