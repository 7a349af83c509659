/*
 * Cancellation of threads, at cancellation points. This file is linked only with programs that call
 * pthread_cancel, instrumented like them; the linker leads their calls of cancellation points to the
 * functions below (--wrap). Programs that cancel nothing are not affected.
 *
 * A request is a flag of the thread. A thread that waits at a cancellation point waits for two things, what
 * the function waits for and the flag, so it waits in a loop that looks at both: iterations that change
 * nothing are left out of executions, as they are for loops of the program. Main is never cancelled, so it waits
 * as it does in other programs.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((weak, visibility("hidden")))
#define WRAP __attribute__((visibility("hidden")))
#define SITE ((uintptr_t)__builtin_return_address(0))

_Noreturn void selvedge_give_up(const char *what, uintptr_t site);
/* Whether the running thread is one that can be cancelled at all. */
int selvedge_cancellable(uintptr_t site);
/* Fails if there is no such thread. */
void selvedge_check_thread(pthread_t thread, uintptr_t site);
/* Tries to take one off; leaves nothing behind if it cannot, not even in errno. */
int selvedge_semaphore_takes(sem_t *semaphore, uintptr_t site);
/* The parts of a wait: to join the waiters and give the mutex back, to look whether there was a signal,
 * and to leave, which tells whether there was one. */
unsigned selvedge_condition_enter(pthread_cond_t *condition, pthread_mutex_t *mutex, uintptr_t site);
int selvedge_condition_woken(pthread_cond_t *condition, unsigned place, uintptr_t site);
int selvedge_condition_leave(pthread_cond_t *condition, unsigned place, uintptr_t site);

enum { THREADS = 1024 };
/* REQUESTED: the thread is to be cancelled. INSIDE: it waits in a function where it cannot be cancelled
 * here, although it could be in reality. One word for both, so that under no memory model two threads that set
 * one each can miss each other. */
enum { REQUESTED = 1, INSIDE = 2 };
static atomic_int state[THREADS];
static _Thread_local char disabled;

static int self(void) { return (int)(uintptr_t)pthread_self() - 1; }

static int may_be_cancelled(uintptr_t site) {
    if (disabled || !selvedge_cancellable(site))
        return 0;
    if (self() >= THREADS)
        selvedge_give_up("cancellation with more than 1024 threads", site);
    return 1;
}

static int is_requested(void) { return atomic_load(&state[self()]) & REQUESTED; }

/* Cleanup handlers and destructors run with cancellation disabled. */
static _Noreturn void end_thread(void) {
    disabled = 1;
    pthread_exit(PTHREAD_CANCELED);
}

static void test(uintptr_t site) {
    if (may_be_cancelled(site) && is_requested())
        end_thread();
}

API int pthread_cancel(pthread_t thread) {
    int index = (int)(uintptr_t)thread - 1;
    selvedge_check_thread(thread, SITE);
    if (index == 0)
        selvedge_give_up("pthread_cancel of the main thread, which is not modelled", SITE);
    if (index >= THREADS)
        selvedge_give_up("cancellation with more than 1024 threads", SITE);
    if (atomic_fetch_or(&state[index], REQUESTED) & INSIDE)
        selvedge_give_up("pthread_cancel of a thread that waits in pthread_join, which is not modelled", SITE);
    return 0;
}

WRAP int __wrap_pthread_setcancelstate(int wanted, int *old) {
    if (wanted != PTHREAD_CANCEL_ENABLE && wanted != PTHREAD_CANCEL_DISABLE)
        return EINVAL;
    if (old)
        *old = disabled ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE;
    disabled = wanted == PTHREAD_CANCEL_DISABLE;
    return 0;
}

WRAP int __wrap_pthread_setcanceltype(int type, int *old) {
    if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
        selvedge_give_up("asynchronous cancellation (pthread_setcanceltype), which is not modelled; leave "
                         "cancellation deferred, and call pthread_testcancel", SITE);
    if (type != PTHREAD_CANCEL_DEFERRED)
        return EINVAL;
    if (old)
        *old = PTHREAD_CANCEL_DEFERRED;
    return 0;
}

WRAP void __wrap_pthread_testcancel(void) { test(SITE); }

/* What the stubs of all other cancellation points call first. */
WRAP void __wrap_cancellation_point(const char *what, uintptr_t site) {
    if (may_be_cancelled(site))
        selvedge_give_up(what, site);
}

/* ---- functions that wait ----------------------------------------------------------------------- */

int __real_pthread_join(pthread_t thread, void **result);
int __real_sem_wait(sem_t *semaphore);
int __real_sem_timedwait(sem_t *semaphore, const struct timespec *deadline);
int __real_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline);
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *deadline);
int __real_pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *deadline);

/* A request before the wait is acted on. One that comes during the wait is refused. */
WRAP int __wrap_pthread_join(pthread_t thread, void **result) {
    if (!may_be_cancelled(SITE))
        return __real_pthread_join(thread, result);
    int before = atomic_fetch_or(&state[self()], INSIDE);
    if (!(before & REQUESTED)) {
        int number = __real_pthread_join(thread, result);
        atomic_fetch_and(&state[self()], ~INSIDE);
        return number;
    }
    atomic_fetch_and(&state[self()], ~INSIDE);
    end_thread();
}

WRAP int __wrap_sem_wait(sem_t *semaphore) {
    if (!may_be_cancelled(SITE))
        return __real_sem_wait(semaphore);
    if (is_requested())
        end_thread();
    while (!selvedge_semaphore_takes(semaphore, SITE))
        if (is_requested())
            end_thread();
    return 0;
}

/* Deadlines pass whenever nothing else happens first, so these functions do not wait. */
WRAP int __wrap_sem_timedwait(sem_t *semaphore, const struct timespec *deadline) {
    test(SITE);
    int result = __real_sem_timedwait(semaphore, deadline);
    if (result && errno == ETIMEDOUT)
        test(SITE);
    return result;
}

WRAP int __wrap_sem_clockwait(sem_t *semaphore, clockid_t clock, const struct timespec *deadline) {
    test(SITE);
    int result = __real_sem_clockwait(semaphore, clock, deadline);
    if (result && errno == ETIMEDOUT)
        test(SITE);
    return result;
}

/* A thread that is cancelled holds the mutex again before its cleanup handlers run. A signal that it
 * got at the same time goes to another waiter. */
WRAP int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex) {
    if (!may_be_cancelled(SITE))
        return __real_pthread_cond_wait(condition, mutex);
    if (is_requested())
        end_thread();
    unsigned place = selvedge_condition_enter(condition, mutex, SITE);
    while (!selvedge_condition_woken(condition, place, SITE))
        if (is_requested()) {
            if (selvedge_condition_leave(condition, place, SITE))
                pthread_cond_signal(condition);
            pthread_mutex_lock(mutex);
            end_thread();
        }
    selvedge_condition_leave(condition, place, SITE);
    return pthread_mutex_lock(mutex);
}

WRAP int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                       const struct timespec *deadline) {
    test(SITE);
    int result = __real_pthread_cond_timedwait(condition, mutex, deadline);
    if (result == ETIMEDOUT)
        test(SITE);
    return result;
}

WRAP int __wrap_pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock,
                                       const struct timespec *deadline) {
    test(SITE);
    int result = __real_pthread_cond_clockwait(condition, mutex, clock, deadline);
    if (result == ETIMEDOUT)
        test(SITE);
    return result;
}

/* ---- functions that sleep ---------------------------------------------------------------------- */

int __real_nanosleep(const struct timespec *duration, struct timespec *left);
int __real_clock_nanosleep(clockid_t clock, int flags, const struct timespec *moment, struct timespec *left);
int __real_usleep(useconds_t duration);
unsigned __real_sleep(unsigned duration);

/* A request that comes before or during the sleep is acted on at its end: nothing tells the difference. */
WRAP int __wrap_nanosleep(const struct timespec *duration, struct timespec *left) {
    int result = __real_nanosleep(duration, left);
    test(SITE);
    return result;
}

WRAP int __wrap_clock_nanosleep(clockid_t clock, int flags, const struct timespec *moment,
                                struct timespec *left) {
    int result = __real_clock_nanosleep(clock, flags, moment, left);
    test(SITE);
    return result;
}

WRAP int __wrap_usleep(useconds_t duration) {
    int result = __real_usleep(duration);
    test(SITE);
    return result;
}

WRAP unsigned __wrap_sleep(unsigned duration) {
    unsigned result = __real_sleep(duration);
    test(SITE);
    return result;
}
