/*
 * Read-copy-update with grace periods that wait for processors rather than for readers, as in the tree
 * flavour of the Linux kernel, reduced to one node.
 *
 * A reader marks nothing: while it is in its section its processor passes through no quiescent state
 * (a context switch, or being idle). The updater changes `x`, waits for a grace period and changes `y`.
 * A thread of its own runs the grace period: it awaits every processor, and takes idle ones off the list
 * itself; the others take themselves off in the interrupt that follows a quiescent state. So no reader may see
 * the new `y` beside the old `x`.
 *
 * The faults mirror those that were injected into the kernel's code:
 *   ASSERT_0         not a fault of RCU: an assertion after the grace period, to see that it ends
 *   FORCE_FAILURE_1  a reader lets its processor pass through a context switch inside its section
 *   FORCE_FAILURE_2  the updater does not wait
 *   FORCE_FAILURE_3  every processor is taken for idle
 *   FORCE_FAILURE_4  a quiescent state from before the grace period counts
 *   FORCE_FAILURE_5  a grace period begins with no processor to wait for
 *   FORCE_FAILURE_6  the end of a grace period is never announced
 *
 * Check:    selvedge verify examples/c/rcu_tree.c
 * Expected: verified; with one of the faults (-- -DFORCE_FAILURE_1), a bug
 * Source:   after M. Kokologiannakis, K. Sagonas, "Stateless Model Checking of the Linux Kernel's
 *           Hierarchical Read-Copy-Update (Tree RCU)", SPIN 2017, and the diploma thesis of
 *           I.-P. Sachinoglou
 */
#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#ifndef READERS
#define READERS 1
#endif
#ifndef SECTIONS
#define SECTIONS 2
#endif

enum { READERS_CPU, UPDATERS_CPU, CPUS };

/* What a processor knows. Only threads that run on it touch this, one at a time. */
struct cpu {
    pthread_mutex_t running;  /* held by the thread that runs there */
    int grace_period;         /* the newest one it has heard of */
    bool awaited;             /* that one waits for it */
    bool quiescent;           /* it passed through a quiescent state since it heard of it */
    atomic_int dynticks;      /* even while it is idle; others look at this one */
};

static struct cpu cpus[CPUS] = {
    {.running = PTHREAD_MUTEX_INITIALIZER},
    {.running = PTHREAD_MUTEX_INITIALIZER},
};

/* The node that processors report to. */
static pthread_mutex_t node = PTHREAD_MUTEX_INITIALIZER;
static atomic_int awaited_cpus; /* a bit for each that has not reported; written with the node held */
static atomic_int started;
static sem_t requested, completed;

static atomic_int x, y;

static void idle_exit(int cpu)
{
    atomic_fetch_add(&cpus[cpu].dynticks, 1);
}

static void idle_enter(int cpu)
{
    atomic_fetch_add(&cpus[cpu].dynticks, 1);
}

static void acquire_cpu(int cpu)
{
    pthread_mutex_lock(&cpus[cpu].running);
    idle_exit(cpu);
}

static void release_cpu(int cpu)
{
    idle_enter(cpu);
    pthread_mutex_unlock(&cpus[cpu].running);
}

static void take_off(int cpu, int grace_period)
{
    pthread_mutex_lock(&node);
    if (atomic_load(&started) == grace_period)
        atomic_fetch_and(&awaited_cpus, ~(1 << cpu));
    pthread_mutex_unlock(&node);
}

static void context_switch(int cpu)
{
    cpus[cpu].quiescent = true;
}

/* The timer's interrupt: hears of a new grace period, and reports a quiescent state to the old one. */
static void interrupt(int cpu)
{
    struct cpu *this = &cpus[cpu];
    int grace_period = atomic_load(&started);
    if (this->grace_period != grace_period) {
        this->grace_period = grace_period;
        this->awaited = true;
#ifndef FORCE_FAILURE_4
        this->quiescent = false;
#endif
    }
    if (this->awaited && this->quiescent) {
        this->awaited = false;
        take_off(cpu, grace_period);
    }
}

static void *reader(void *unused)
{
    (void)unused;
    acquire_cpu(READERS_CPU);
    for (int i = 0; i < SECTIONS; i++) {
        int old_x = atomic_load(&x);
#ifdef FORCE_FAILURE_1
        interrupt(READERS_CPU);
        context_switch(READERS_CPU);
#endif
        interrupt(READERS_CPU);
        int new_y = atomic_load(&y);
        assert(old_x == 1 || new_y == 0);
        context_switch(READERS_CPU);
    }
    interrupt(READERS_CPU);
    release_cpu(READERS_CPU);
    return NULL;
}

static bool is_idle(int cpu)
{
#ifdef FORCE_FAILURE_3
    (void)cpu;
    return true;
#else
    return atomic_load(&cpus[cpu].dynticks) % 2 == 0;
#endif
}

/* Runs one grace period. */
static void *grace_period(void *unused)
{
    (void)unused;
    sem_wait(&requested);
    pthread_mutex_lock(&node);
#ifndef FORCE_FAILURE_5
    atomic_store(&awaited_cpus, (1 << CPUS) - 1);
#endif
    atomic_store(&started, 1);
    pthread_mutex_unlock(&node);
    for (int awaited; (awaited = atomic_load(&awaited_cpus)) != 0;)
        for (int cpu = 0; cpu < CPUS; cpu++)
            if ((awaited & 1 << cpu) && is_idle(cpu))
                take_off(cpu, 1);
#ifndef FORCE_FAILURE_6
    sem_post(&completed);
#endif
    return NULL;
}

static void synchronize(int cpu)
{
    sem_post(&requested);
    context_switch(cpu);
    release_cpu(cpu);
#ifndef FORCE_FAILURE_2
    sem_wait(&completed);
#endif
    acquire_cpu(cpu);
}

static void *updater(void *unused)
{
    (void)unused;
    acquire_cpu(UPDATERS_CPU);
    atomic_store(&x, 1);
    synchronize(UPDATERS_CPU);
#ifdef ASSERT_0
    assert(!"the grace period has ended");
#endif
    atomic_store(&y, 1);
    release_cpu(UPDATERS_CPU);
    return NULL;
}

int main(void)
{
    pthread_t readers[READERS], others[2];
    sem_init(&requested, 0, 0);
    sem_init(&completed, 0, 0);
    pthread_create(&others[1], NULL, updater, NULL);
    for (int i = 0; i < READERS; i++)
        pthread_create(&readers[i], NULL, reader, NULL);
    pthread_create(&others[0], NULL, grace_period, NULL);
    for (int i = 0; i < READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_join(others[0], NULL);
    pthread_join(others[1], NULL);
    return 0;
}
