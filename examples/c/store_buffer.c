/*
 * Two threads announce themselves and look whether the other one has.
 *
 * Under sequential consistency at least one of them sees the other. On x86 both stores may still sit in a
 * store buffer while the loads are made, and in C11 release and acquire do not forbid that: it takes
 * sequentially consistent accesses, or a fence between the store and the load of each thread.
 *
 * Check:    selvedge verify examples/c/store_buffer.c --model tso
 * Expected: the assertion fails under tso, ra and rc11; verified under sc
 * Source:   the litmus test SB, also known as store buffering; the heart of Dekker's algorithm.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_int x, y;
static int saw_x, saw_y;

static void *first(void *unused)
{
    atomic_store_explicit(&x, 1, memory_order_release);
    saw_y = atomic_load_explicit(&y, memory_order_acquire);
    return unused;
}

static void *second(void *unused)
{
    atomic_store_explicit(&y, 1, memory_order_release);
    saw_x = atomic_load_explicit(&x, memory_order_acquire);
    return unused;
}

int main(void)
{
    pthread_t one, two;
    pthread_create(&one, NULL, first, NULL);
    pthread_create(&two, NULL, second, NULL);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    assert(saw_x || saw_y);
    return 0;
}
