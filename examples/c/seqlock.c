/*
 * A sequence lock: the writer makes the counter odd, writes, makes it even again; a reader tries
 * again until it sees the same even number before and after.
 *
 * The protected data are relaxed atomics, since readers do look at them while they are written.
 * An attempt that fails writes nothing, so it is a pure iteration and makes no execution:
 * each of two readers gets one of three versions, 3 * 3 = 9.
 *
 * Check:    selvedge verify examples/c/seqlock.c
 * Expected: verified
 * Source:   the Linux kernel, 2003; in C11 after H.-J. Boehm, "Can Seqlocks Get Along with
 *           Programming Language Memory Models?", MSPC 2012.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef READERS
#define READERS 2
#endif
#ifndef UPDATES
#define UPDATES 2
#endif

static atomic_uint sequence;
static atomic_int left, right;

static void *writer(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < UPDATES; i++) {
        atomic_store_explicit(&sequence, 2 * i + 1, memory_order_relaxed);
        atomic_thread_fence(memory_order_release);
        atomic_store_explicit(&left, (int)i + 1, memory_order_relaxed);
        atomic_store_explicit(&right, (int)i + 1, memory_order_relaxed);
        atomic_store_explicit(&sequence, 2 * i + 2, memory_order_release);
    }
    return NULL;
}

static void *reader(void *unused)
{
    (void)unused;
    unsigned before, after;
    int l, r;
    do {
        before = atomic_load_explicit(&sequence, memory_order_acquire);
        l = atomic_load_explicit(&left, memory_order_relaxed);
        r = atomic_load_explicit(&right, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        after = atomic_load_explicit(&sequence, memory_order_relaxed);
    } while (before != after || before % 2 != 0);
    assert(l == r);
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + 1];
    pthread_create(&threads[0], NULL, writer, NULL);
    for (int i = 1; i <= READERS; i++)
        pthread_create(&threads[i], NULL, reader, NULL);
    for (int i = 0; i <= READERS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
