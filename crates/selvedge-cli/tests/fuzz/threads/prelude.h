/*
 * What the random programs share. A program defines `unsigned outcome(void)`, which runs its threads and
 * returns what they observed, folded to a number below 256.
 *
 * Under Selvedge each outcome is an assertion of its own that fails. Natively (-DNATIVE) the program runs
 * ROUNDS times and prints the outcomes.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Folds an observed value into the thread's own ones. */
#define SEE(value) (seen = seen * 31 + (unsigned)(value) + 1)
#define FUNCTION __attribute__((noinline)) static

#ifdef __clang__
#define AS_WRITTEN __attribute__((noinline, optnone)) static
#else
#define AS_WRITTEN __attribute__((noinline, optimize("O0"))) static
#endif

static unsigned outcome(void);

static unsigned fold(unsigned value) { return (value ^ value >> 8 ^ value >> 16 ^ value >> 24) & 255; }

#ifdef NATIVE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned native_round;
static __thread unsigned native_noise;
static int native_arrived;

/* Threads that start at about the same time interfere more often. */
static void begin(unsigned thread, int threads) {
    native_noise = native_round * 2654435761u + thread * 40503u;
    __atomic_fetch_add(&native_arrived, 1, __ATOMIC_RELAXED);
    for (int n = 0; n < 3000 && __atomic_load_n(&native_arrived, __ATOMIC_RELAXED) < threads; n++) {}
}

static void delay(void) {
    native_noise = native_noise * 1664525 + 1013904223;
    unsigned length = native_noise >> 24;
    for (volatile unsigned n = length < 128 ? 0 : length - 128; n; n--) {}
}

int main(void) {
    int seen[256] = {0};
    for (native_round = 0; native_round < ROUNDS; native_round++) {
        pid_t child = fork();
        if (child == 0) { alarm(100); _exit(outcome()); }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) {
            printf("failed\n");
            return 1;
        }
        seen[WEXITSTATUS(status)]++;
    }
    for (int n = 0; n < 256; n++) if (seen[n]) printf("%d\n", n);
    return 0;
}
#else
#include "selvedge.h"

static void begin(unsigned thread, int threads) {}
static void delay(void) {}

AS_WRITTEN void report(unsigned value) {
@REPORTS@
}

int main(void) {
    report(outcome());
    return 0;
}
#endif

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread int local_plain;
static __thread volatile int local_volatile;
static __thread _Atomic int local_atomic;

struct node { _Atomic(struct node *) next; _Atomic int locked; };
union view { long whole; int half[2]; volatile short quarter[4]; unsigned char bytes[8]; };

/* A node of a queue: plain initialisation, then atomic accesses. */
FUNCTION unsigned node(int k) {
    unsigned seen = 0;
    struct node n = {0};
    SEE(atomic_load(&n.locked));
    atomic_store(&n.locked, k);
    atomic_store(&n.next, &n);
    SEE(atomic_load(&n.next) == &n);
    n = (struct node){0, k + 1};
    SEE(atomic_fetch_add(&n.locked, 1));
    return seen + (unsigned)n.locked;
}

/* The argument is written by the caller's side or by a spill. */
FUNCTION long spilled(long v) { return *(volatile long *)&v; }

FUNCTION unsigned initialised(int k) {
    unsigned seen = 0;
    _Atomic int a;
    atomic_init(&a, k);
    SEE(atomic_load(&a));
    atomic_init(&a, k + 1);
    SEE(atomic_exchange(&a, 5));
    return seen + (unsigned)atomic_load(&a);
}

FUNCTION int recurse(int n, volatile int *above) {
    volatile int here = n + *above;
    if (n == 0) return here;
    int below = recurse(n - 1, &here);
    *above += here;
    return below + here;
}

FUNCTION unsigned viewed(int k) {
    unsigned seen = 0;
    union view u;
    u.whole = 0x0102030405060708 * k;
    SEE(u.quarter[1]);
    u.quarter[2] = k;
    SEE(u.half[1]);
    u.bytes[3] = 7;
    SEE(u.half[0]);
    volatile union view *p = &u;
    p->half[1] = 3;
    SEE(p->whole >> 24);
    return seen;
}

FUNCTION int summed(int count, ...) {
    va_list list;
    va_start(list, count);
    int sum = 0;
    for (int n = 0; n < count; n++) sum = sum * 3 + va_arg(list, int);
    va_end(list);
    return sum;
}

FUNCTION unsigned array(int k) {
    unsigned seen = 0;
    volatile int fixed[4] = {1, 2, 3, k};
    int sized[k + 1];
    for (int n = 0; n <= k; n++) sized[n] = n;
    volatile int *p = sized;
    p[k] += fixed[k & 3];
    SEE(p[k]);
    fixed[k & 3] = 9;
    int copy[4];
    for (int n = 0; n < 4; n++) copy[n] = fixed[n];
    SEE(copy[k & 3]);
    return seen + (unsigned)sized[k];
}

FUNCTION unsigned locals(int k) {
    unsigned seen = 0;
    local_plain += k;
    local_volatile += local_plain;
    SEE(local_volatile);
    int *p = &local_plain;
    *p += 1;
    SEE(local_plain);
    SEE(atomic_fetch_add(&local_atomic, k));
    local_volatile = k;
    SEE(local_volatile);
    return seen + (unsigned)local_atomic;
}
