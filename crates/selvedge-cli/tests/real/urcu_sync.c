/* Userspace RCU's memory-barrier flavour with its own synchronize_rcu: one reader, one writer. */
#define _LGPL_SOURCE
#include <assert.h>
#include <pthread.h>
#include <urcu/arch.h>
#ifdef WEAK
/* The reader's fences order what the compiler does and nothing else. */
#undef cmm_smp_mb
#define cmm_smp_mb() cmm_barrier()
#endif
#include <urcu.h>

static int first = 1, second = 2, *pointer = &first;

static void *reader(void *unused) {
    rcu_register_thread();
    rcu_read_lock();
    assert(*rcu_dereference(pointer));
    rcu_read_unlock();
    rcu_unregister_thread();
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, reader, 0);
    rcu_xchg_pointer(&pointer, &second);
    synchronize_rcu();
    first = 0;
    return pthread_join(thread, 0);
}
