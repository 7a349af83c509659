/* ---- signals that a thread sends itself -------------------------------------------------------- */

enum { SIGNALS = 65 };
static lock signals_guard;
static struct sigaction actions[SIGNALS];
/* What the thread has blocked, and what waits for that to end: a bit for each signal. */
static __thread uint64_t blocked, waiting;

static uint64_t bit(int number) { return 1ULL << (number - 1); }

static int is_signal(int number) { return number > 0 && number < SIGNALS; }

API int sigaction(int number, const struct sigaction *action, struct sigaction *old) {
    if (!is_signal(number) || (action && (number == SIGKILL || number == SIGSTOP)))
        return fail(EINVAL);
    enter(&signals_guard);
    if (old)
        *old = actions[number];
    if (action)
        actions[number] = *action;
    leave(&signals_guard, 0);
    return 0;
}

/* Handlers run on the stack of the thread; nothing can tell the difference. */
API int sigaltstack(const stack_t *stack, stack_t *old) {
    static __thread stack_t present = {.ss_flags = SS_DISABLE};
    stack_t before = present;
    if (stack)
        present = *stack;
    if (old)
        *old = before;
    return 0;
}

static void (*handle(int number, void (*handler)(int), int flags))(int) {
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    return sigaction(number, &action, &old) ? SIG_ERR : old.sa_handler;
}

API void (*signal(int number, void (*handler)(int)))(int) {
    return handle(number, handler, SA_RESTART);
}

API void (*bsd_signal(int number, void (*handler)(int)))(int) {
    return handle(number, handler, SA_RESTART);
}

API void (*__sysv_signal(int number, void (*handler)(int)))(int) {
    return handle(number, handler, SA_RESETHAND | SA_NODEFER);
}

static uint64_t bits_of(const sigset_t *set) {
    uint64_t bits;
    memcpy(&bits, set, sizeof bits);
    return bits;
}

API int sigemptyset(sigset_t *set) {
    memset(set, 0, sizeof *set);
    return 0;
}

API int sigfillset(sigset_t *set) {
    memset(set, 0xff, sizeof *set);
    return 0;
}

static int change_set(sigset_t *set, int number, int add) {
    if (!is_signal(number))
        return fail(EINVAL);
    uint64_t bits = bits_of(set);
    bits = add ? bits | bit(number) : bits & ~bit(number);
    memcpy(set, &bits, sizeof bits);
    return 0;
}

API int sigaddset(sigset_t *set, int number) { return change_set(set, number, 1); }

API int sigdelset(sigset_t *set, int number) { return change_set(set, number, 0); }

API int sigismember(const sigset_t *set, int number) {
    return is_signal(number) ? (bits_of(set) & bit(number)) != 0 : fail(EINVAL);
}

/* Calls the handler in the running thread, or does what a signal does by default. */
static int deliver(int number) {
    enter(&signals_guard);
    struct sigaction action = actions[number];
    if (action.sa_flags & SA_RESETHAND)
        actions[number].sa_handler = SIG_DFL;
    leave(&signals_guard, 0);
    if (action.sa_handler == SIG_IGN)
        return 0;
    if (action.sa_handler == SIG_DFL)
        return selvedge_raise(number);
    uint64_t before = blocked;
    blocked |= bits_of(&action.sa_mask) | (action.sa_flags & SA_NODEFER ? 0 : bit(number));
    if (action.sa_flags & SA_SIGINFO) {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        info.si_signo = number;
        info.si_code = SI_TKILL;
        info.si_pid = getpid();
        action.sa_sigaction(number, &info, 0);
    } else
        action.sa_handler(number);
    blocked = before;
    return 0;
}

static void deliver_waiting(void) {
    for (int number = 1; number < SIGNALS; number++)
        if (waiting & ~blocked & bit(number)) {
            waiting &= ~bit(number);
            deliver(number);
        }
}

API int raise(int number) {
    if (number == 0)
        return 0;
    if (!is_signal(number))
        return fail(EINVAL);
    if (blocked & bit(number) && number != SIGKILL && number != SIGSTOP) {
        waiting |= bit(number);
        return 0;
    }
    int result = deliver(number);
    deliver_waiting();
    return result;
}

API int kill(pid_t process, int number) {
    if (process != getpid() && process != 0)
        REFUSE("kill of another process; there is one process only");
    enter(&signals_guard);
    void (*handler)(int) = is_signal(number) ? actions[number].sa_handler : SIG_DFL;
    leave(&signals_guard, 0);
    if (handler != SIG_DFL && handler != SIG_IGN)
        REFUSE("kill where any thread may handle the signal; use raise");
    return raise(number);
}

API int pthread_kill(pthread_t thread, int number) {
    if (number && thread != pthread_self())
        REFUSE("pthread_kill of another thread; use a flag or a condition variable");
    return raise(number) ? errno : 0;
}

static int change_mask(int how, const sigset_t *set, sigset_t *old) {
    if (old) {
        memset(old, 0, sizeof *old);
        memcpy(old, &blocked, sizeof blocked);
    }
    if (!set)
        return 0;
    uint64_t bits = bits_of(set) & ~(bit(SIGKILL) | bit(SIGSTOP));
    if (how == SIG_BLOCK)
        blocked |= bits;
    else if (how == SIG_UNBLOCK)
        blocked &= ~bits;
    else if (how == SIG_SETMASK)
        blocked = bits;
    else
        return EINVAL;
    deliver_waiting();
    return 0;
}

API int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    return change_mask(how, set, old);
}

API int sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    int number = change_mask(how, set, old);
    return number ? fail(number) : 0;
}

API int sigpending(sigset_t *set) {
    memset(set, 0, sizeof *set);
    memcpy(set, &waiting, sizeof waiting);
    return 0;
}
