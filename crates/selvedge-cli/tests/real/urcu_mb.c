/* The read side of userspace RCU's memory-barrier flavour, with a writer that waits for one reader. */
#define _LGPL_SOURCE
#include <assert.h>
#include <pthread.h>
#include <urcu/static/urcu-mb.h>
#include <urcu/static/pointer.h>

struct urcu_gp urcu_mb_gp = {.ctr = URCU_GP_COUNT};
DEFINE_URCU_TLS(struct urcu_reader, urcu_mb_reader);
static struct urcu_reader *registered;
static int finished;
static int first = 1, second = 2, *pointer = &first;

static void *reader(void *unused) {
    uatomic_set(&registered, &URCU_TLS(urcu_mb_reader));
    _urcu_mb_read_lock();
    assert(*_rcu_dereference(pointer));
    _urcu_mb_read_unlock();
    /* The thread's state must stay until nobody looks at it. */
    while (!CMM_LOAD_SHARED(finished)) {
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, reader, 0);
    struct urcu_reader *state = CMM_LOAD_SHARED(registered);
    _rcu_xchg_pointer(&pointer, &second);
#ifndef WEAK
    for (int phase = 0; state && phase < 2; phase++) {
        CMM_STORE_SHARED(urcu_mb_gp.ctr, urcu_mb_gp.ctr ^ URCU_GP_CTR_PHASE);
        cmm_smp_mb();
        while (urcu_common_reader_state(&urcu_mb_gp, &state->ctr) == URCU_READER_ACTIVE_OLD) {
        }
        cmm_smp_mb();
    }
    if (!state) {
        CMM_STORE_SHARED(finished, 1);
        pthread_join(thread, 0);
    }
#endif
    first = 0;
    CMM_STORE_SHARED(finished, 1);
    return state ? pthread_join(thread, 0) : 0;
}
