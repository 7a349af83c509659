/*
 * A read-write lock in one atomic word: the number of readers, or -1 for a writer.
 *
 * Readers check that they never see a half-done update, although the two fields they read are
 * plain.
 *
 * Check:    selvedge verify examples/c/rwlock_atomic.c
 * Expected: verified
 * Source:   folklore; the problem is P. J. Courtois, F. Heymans, D. L. Parnas, "Concurrent Control
 *           with Readers and Writers", CACM 14(10), 1971.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef READERS
#define READERS 2
#endif
#ifndef WRITERS
#define WRITERS 1
#endif

static atomic_int state;
static int left, right;

static void read_lock(void)
{
    for (;;) {
        int readers = atomic_load_explicit(&state, memory_order_relaxed);
        if (readers >= 0 &&
            atomic_compare_exchange_strong_explicit(&state, &readers, readers + 1,
                                                    memory_order_acquire, memory_order_relaxed))
            return;
    }
}

static void read_unlock(void)
{
    atomic_fetch_sub_explicit(&state, 1, memory_order_release);
}

static void write_lock(void)
{
    int expected = 0;
    while (!atomic_compare_exchange_strong_explicit(&state, &expected, -1, memory_order_acquire,
                                                    memory_order_relaxed))
        expected = 0;
}

static void write_unlock(void)
{
    atomic_store_explicit(&state, 0, memory_order_release);
}

static void *reader(void *unused)
{
    (void)unused;
    read_lock();
    assert(left == right);
    read_unlock();
    return NULL;
}

static void *writer(void *unused)
{
    (void)unused;
    write_lock();
    left++;
    right++;
    write_unlock();
    return NULL;
}

int main(void)
{
    pthread_t threads[READERS + WRITERS];
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_create(&threads[i], NULL, i < READERS ? reader : writer, NULL);
    for (int i = 0; i < READERS + WRITERS; i++)
        pthread_join(threads[i], NULL);
    assert(left == WRITERS && right == WRITERS);
    return 0;
}
