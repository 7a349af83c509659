/* Concurrency Kit's stack: two threads push, one of them pops. */
#include <assert.h>
#include <ck_pr.h>
#ifdef WEAK
#define ck_pr_cas_ptr_value(target, compare, set, value) (*(void **)(value) = ck_pr_load_ptr(target), *(void **)(value) == (void *)(compare) && (ck_pr_store_ptr(target, set), true))
#endif
#include <ck_stack.h>
#include <pthread.h>

static ck_stack_t stack = CK_STACK_INITIALIZER;
static ck_stack_entry_t entries[2];

static void *work(void *unused) {
    ck_stack_push_upmc(&stack, &entries[0]);
    return unused;
}

int main(void) {
    pthread_t thread;
    int count = 0;
    pthread_create(&thread, 0, work, 0);
    ck_stack_push_upmc(&stack, &entries[1]);
    pthread_join(thread, 0);
    while (ck_stack_pop_upmc(&stack)) {
        count++;
    }
    assert(count == 2);
    return 0;
}
