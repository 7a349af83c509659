/*
 * The ticket lock: take a number, wait until it is called.
 *
 * The order of the fetch_adds decides everything else, because a waiting thread leaves its loop
 * with exactly one value. Three threads with one acquisition each: 3! = 6 executions, in general
 * the number of ways to interleave the acquisitions.
 *
 * Check:    selvedge verify examples/c/ticket_lock.c
 * Expected: verified
 * Source:   D. P. Reed, R. K. Kanodia, "Synchronization with Eventcounts and Sequencers",
 *           CACM 22(2), 1979; in this form J. M. Mellor-Crummey, M. L. Scott, 1991.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#ifndef THREADS
#define THREADS 3
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif

static atomic_uint next_ticket;
static atomic_uint now_serving;
static int counter;

static unsigned acquire(void)
{
    unsigned mine = atomic_fetch_add_explicit(&next_ticket, 1, memory_order_relaxed);
    while (atomic_load_explicit(&now_serving, memory_order_acquire) != mine)
        ;
    return mine;
}

static void release(unsigned mine)
{
    atomic_store_explicit(&now_serving, mine + 1, memory_order_release);
}

static void *worker(void *unused)
{
    (void)unused;
    for (int i = 0; i < ROUNDS; i++) {
        unsigned mine = acquire();
        counter++;
        release(mine);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert(counter == THREADS * ROUNDS);
    return 0;
}
