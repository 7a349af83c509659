/*
 * A value handed over by a flag whose orders are too weak.
 *
 * The writer fills in the value and raises the flag, the reader looks at the value once it sees the
 * flag. Under sequential consistency that is fine. In C11 a relaxed flag orders nothing: the two accesses to the
 * value are a data race.
 *
 * Check:    selvedge verify examples/c/publish_relaxed.c
 * Expected: a data race under rc11, with the advice to make the store of the flag a release and
 *           its load an acquire; verified under sc, tso and ra
 * Source:   the litmus test MP, also known as message passing.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

static int value;
static atomic_int ready;

static void *writer(void *unused)
{
    value = 42;
    atomic_store_explicit(&ready, 1, memory_order_relaxed);
    return unused;
}

int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, writer, NULL);
    if (atomic_load_explicit(&ready, memory_order_relaxed))
        assert(value == 42);
    pthread_join(thread, NULL);
    return 0;
}
