/*
 * Two threads that keep adding the other one's variable to their own.
 *
 * The assertion is too strict by one: only perfect alternation of the two threads, the most
 * context switches there can be, reaches the forbidden value.
 *
 * Check:    selvedge verify examples/c/fib_bench_false.c
 * Expected: bug, an assertion: the largest value is reached
 * Source:   theme of SV-COMP's pthread/fib_bench, written anew
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef ROUNDS
#define ROUNDS 3
#endif

static atomic_int a = 1, b = 1;

static void *adds_to_a(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int sum = atomic_load(&a);
        sum += atomic_load(&b);
        atomic_store(&a, sum);
    }
    return NULL;
}

static void *adds_to_b(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        int sum = atomic_load(&a);
        sum += atomic_load(&b);
        atomic_store(&b, sum);
    }
    return NULL;
}

static int fibonacci(int n)
{
    int previous = 0, current = 1;
    for (int i = 1; i < n; i++) {
        int sum = previous + current;
        previous = current;
        current = sum;
    }
    return current;
}

int main(void)
{
    pthread_t threads[2];
    int largest = fibonacci(2 * ROUNDS + 2);
    pthread_create(&threads[0], NULL, adds_to_a, NULL);
    pthread_create(&threads[1], NULL, adds_to_b, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert(atomic_load(&a) < largest && atomic_load(&b) < largest);
    return 0;
}
