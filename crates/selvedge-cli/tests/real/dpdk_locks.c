/* DPDK's locks: LOCK is spinlock or ticketlock. */
#include <rte_config.h>
#ifdef WEAK
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include <rte_spinlock.h>
#include <rte_ticketlock.h>
#include <assert.h>
#include <pthread.h>

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
/* Zero is what the initialisers say. The function that initialises a ticket lock writes both of its halves at
 * once, which is checked under sc only. */
static PASTE(rte_, LOCK, _t) lock;
static int count;

static void *work(void *unused) {
    PASTE(rte_, LOCK, _lock)(&lock);
    count++;
    PASTE(rte_, LOCK, _unlock)(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, work, 0);
    work(0);
    pthread_join(thread, 0);
    assert(count == 2);
    return 0;
}
