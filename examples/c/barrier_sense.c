/*
 * A sense-reversing barrier.
 *
 * The last thread to arrive resets the count and flips the sense that the others spin on, so the
 * barrier can be used again at once. In every phase each thread writes its own slot and, behind
 * the barrier, reads all of them; the slots are plain.
 *
 * Check:    selvedge verify examples/c/barrier_sense.c
 * Expected: verified
 * Source:   D. Hensgen, R. Finkel, U. Manber, "Two Algorithms for Barrier Synchronization",
 *           International Journal of Parallel Programming 17(1), 1988.
 */
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#ifndef THREADS
#define THREADS 2
#endif
#ifndef PHASES
#define PHASES 2
#endif

static atomic_int missing = THREADS;
static atomic_int sense;
static int slots[THREADS];

static void barrier(int *local_sense)
{
    *local_sense = !*local_sense;
    if (atomic_fetch_sub_explicit(&missing, 1, memory_order_acq_rel) == 1) {
        atomic_store_explicit(&missing, THREADS, memory_order_relaxed);
        atomic_store_explicit(&sense, *local_sense, memory_order_release);
    } else {
        while (atomic_load_explicit(&sense, memory_order_acquire) != *local_sense)
            ;
    }
}

static void *worker(void *arg)
{
    int me = (int)(intptr_t)arg;
    int local_sense = 0;
    for (int phase = 1; phase <= PHASES; phase++) {
        slots[me] = phase;
        barrier(&local_sense);
        for (int i = 0; i < THREADS; i++)
            assert(slots[i] == phase);
        barrier(&local_sense);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
