/* DPDK's locks: LOCK is spinlock, ticketlock, rwlock or mcslock. */
#include <rte_config.h>
#ifdef WEAK
#undef __ATOMIC_RELEASE
#define __ATOMIC_RELEASE __ATOMIC_RELAXED
#endif
#include <rte_mcslock.h>
#include <rte_rwlock.h>
#include <rte_spinlock.h>
#include <rte_ticketlock.h>
#include <assert.h>
#include <pthread.h>

#define TYPE_spinlock rte_spinlock_t
#define LOCK_spinlock rte_spinlock_lock(&lock)
#define UNLOCK_spinlock rte_spinlock_unlock(&lock)
#define TYPE_ticketlock rte_ticketlock_t
#define LOCK_ticketlock rte_ticketlock_lock(&lock)
#define UNLOCK_ticketlock rte_ticketlock_unlock(&lock)
#define TYPE_rwlock rte_rwlock_t
#define LOCK_rwlock rte_rwlock_write_lock(&lock)
#define UNLOCK_rwlock rte_rwlock_write_unlock(&lock)
#define TYPE_mcslock rte_mcslock_t *
#define LOCK_mcslock rte_mcslock_t mine; rte_mcslock_lock(&lock, &mine)
#define UNLOCK_mcslock rte_mcslock_unlock(&lock, &mine)

#define PASTE_(a, b) a##b
#define PASTE(a, b) PASTE_(a, b)
/* Zero is what the initialisers say. The function that initialises a ticket lock writes both of its halves at
 * once, which is checked under sc only. */
static PASTE(TYPE_, LOCK) lock;
static int count;

static void *work(void *unused) {
    PASTE(LOCK_, LOCK);
    count++;
    PASTE(UNLOCK_, LOCK);
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
