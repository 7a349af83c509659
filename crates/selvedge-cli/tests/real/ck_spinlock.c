/* Concurrency Kit's locks; LOCK is fas, cas, dec, ticket, mcs or clh. */
#include <assert.h>
#include <ck_pr.h>
#ifdef WEAK
/* Updates that are not atomic. */
#define ck_pr_fas_uint(target, value) ({ unsigned old = ck_pr_load_uint(target); ck_pr_store_uint(target, value); old; })
#define ck_pr_faa_uint(target, value) ({ unsigned old = ck_pr_load_uint(target); ck_pr_store_uint(target, old + value); old; })
#define ck_pr_faa_16(target, value) ({ uint16_t old = ck_pr_load_16(target); ck_pr_store_16(target, old + value); old; })
#define ck_pr_faa_32(target, value) ({ uint32_t old = ck_pr_load_32(target); ck_pr_store_32(target, old + value); old; })
#define ck_pr_cas_uint(target, old, new) (ck_pr_load_uint(target) == (old) && (ck_pr_store_uint(target, new), true))
#define ck_pr_fas_ptr(target, value) ({ void *old = ck_pr_load_ptr(target); ck_pr_store_ptr(target, value); old; })
#define ck_pr_dec_uint_zero(target, zero) ({ unsigned new = ck_pr_load_uint(target) - 1; ck_pr_store_uint(target, new); *(zero) = !new; })
#endif
#include <ck_spinlock.h>
#include <pthread.h>

/* These two are queues of nodes. */
#define ck_spinlock_mcs_init(lock) ck_spinlock_mcs_init(&queue)
#define ck_spinlock_mcs_lock(lock) ck_spinlock_mcs_lock(&queue, node)
#define ck_spinlock_mcs_unlock(lock) ck_spinlock_mcs_unlock(&queue, node)
#define ck_spinlock_clh_init(lock) ck_spinlock_clh_init(&queue, &nodes[2])
#define ck_spinlock_clh_lock(lock) ck_spinlock_clh_lock(&queue, node)
#define ck_spinlock_clh_unlock(lock) ck_spinlock_clh_unlock(&node)
#define NODE_fas char
#define NODE_cas char
#define NODE_dec char
#define NODE_ticket char
#define NODE_mcs ck_spinlock_mcs_context_t
#define NODE_clh ck_spinlock_clh_t

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
static PASTE(ck_spinlock_, LOCK, _t) lock;
static PASTE(NODE, _, LOCK) nodes[3], *queue;
static int count;

static void *work(void *mine) {
    PASTE(NODE, _, LOCK) *node = mine;
    PASTE(ck_spinlock_, LOCK, _lock)(&lock);
    count++;
    PASTE(ck_spinlock_, LOCK, _unlock)(&lock);
    return node;
}

int main(void) {
    pthread_t thread;
    PASTE(ck_spinlock_, LOCK, _init)(&lock);
    pthread_create(&thread, 0, work, &nodes[0]);
    work(&nodes[1]);
    pthread_join(thread, 0);
    assert(count == 2);
    return 0;
}
