/*
 * C11's own threads: call_once, mtx_t and thrd_t.
 *
 * Check:    selvedge verify examples/c/call_once_c11.c
 * Expected: verified
 * Source:   ISO/IEC 9899:2011, section 7.26
 */
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <threads.h>

#ifndef THREADS
#define THREADS 2
#endif

static once_flag once = ONCE_FLAG_INIT;
static mtx_t lock;
static int *counter;

static void initialise(void)
{
    mtx_init(&lock, mtx_plain);
    counter = calloc(1, sizeof *counter);
}

static int worker(void *unused)
{
    (void)unused;
    call_once(&once, initialise);
    mtx_lock(&lock);
    ++*counter;
    mtx_unlock(&lock);
    return 0;
}

int main(void)
{
    thrd_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        thrd_create(&threads[i], worker, NULL);
    for (int i = 0; i < THREADS; i++)
        thrd_join(threads[i], NULL);
    assert(*counter == THREADS);
    free(counter);
    mtx_destroy(&lock);
    return 0;
}
