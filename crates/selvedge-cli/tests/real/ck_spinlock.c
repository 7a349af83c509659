/* Concurrency Kit's locks; LOCK is fas, cas or ticket. */
#include <assert.h>
#include <ck_pr.h>
#ifdef WEAK
/* Exchanges and additions that are not atomic. */
#define ck_pr_fas_uint(target, value) ({ unsigned old = ck_pr_load_uint(target); ck_pr_store_uint(target, value); old; })
#define ck_pr_faa_uint(target, value) ({ unsigned old = ck_pr_load_uint(target); ck_pr_store_uint(target, old + value); old; })
#define ck_pr_faa_16(target, value) ({ uint16_t old = ck_pr_load_16(target); ck_pr_store_16(target, old + value); old; })
#define ck_pr_faa_32(target, value) ({ uint32_t old = ck_pr_load_32(target); ck_pr_store_32(target, old + value); old; })
#define ck_pr_cas_uint(target, old, new) (ck_pr_load_uint(target) == (old) && (ck_pr_store_uint(target, new), true))
#endif
#include <ck_spinlock.h>
#include <pthread.h>

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
static PASTE(ck_spinlock_, LOCK, _t) lock;
static int count;

static void *work(void *unused) {
    PASTE(ck_spinlock_, LOCK, _lock)(&lock);
    count++;
    PASTE(ck_spinlock_, LOCK, _unlock)(&lock);
    return unused;
}

int main(void) {
    pthread_t thread;
    PASTE(ck_spinlock_, LOCK, _init)(&lock);
    pthread_create(&thread, 0, work, 0);
    work(0);
    pthread_join(thread, 0);
    assert(count == 2);
    return 0;
}
