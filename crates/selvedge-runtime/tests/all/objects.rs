//! Read-write locks, condition variables, barriers, semaphores and once.

use selvedge_core::FailureKind::{Assertion, Deadlock, ObjectMisuse};
use selvedge_runtime::{Settings, Unroll};

use crate::common::isolated;
use crate::common::programs::{alone, program, two_threads};
use crate::common::search::{check, check_all, check_with};

const RWLOCK: &str = "pthread_rwlock_t l = PTHREAD_RWLOCK_INITIALIZER;";

#[test]
fn writers_exclude_and_readers_do_not() {
    isolated("writers_exclude_and_readers_do_not", || {
        check_all(
            &two_threads(
                RWLOCK,
                "pthread_rwlock_wrlock(&l); shared++; pthread_rwlock_unlock(&l);",
                "",
                "assert(shared == 2); pthread_rwlock_destroy(&l);",
            ),
            |checked| checked.is_fine_in(2),
        );
        // Both can be inside at once: with a writer, the two would deadlock.
        check(&two_threads(
            &format!("{RWLOCK} atomic_int inside;"),
            "pthread_rwlock_rdlock(&l); inside++; while (inside < 2) {} pthread_rwlock_unlock(&l);",
            "",
            "",
        ))
        .is_fine();
        check(&two_threads(
            RWLOCK,
            "if (me == 1) { pthread_rwlock_wrlock(&l); shared = 1; shared = 0; }
             else { pthread_rwlock_rdlock(&l); assert(shared == 0); }
             pthread_rwlock_unlock(&l);",
            "",
            "",
        ))
        .is_fine_in(2);
    });
}

/// Readers that wait for a writer that waits for readers would be a deadlock that nobody sees.
#[test]
fn read_write_locks_that_prefer_writers_are_refused() {
    isolated("read_write_locks_that_prefer_writers_are_refused", || {
        let kind = "PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP";
        let with = |kind: &str| {
            alone(&format!(
                "pthread_rwlock_t l; pthread_rwlockattr_t a; pthread_rwlockattr_init(&a);
                 assert(!pthread_rwlockattr_setkind_np(&a, {kind}));
                 pthread_rwlock_init(&l, &a); pthread_rwlock_rdlock(&l);"
            ))
        };
        check(&with(kind)).is_refused(kind);
        check(&with("PTHREAD_RWLOCK_PREFER_READER_NP")).is_fine();
        check(&alone(
            "pthread_rwlock_t l = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
             pthread_rwlock_trywrlock(&l);",
        ))
        .is_refused(kind);
    });
}

#[test]
fn read_write_locks_have_all_their_forms() {
    isolated("read_write_locks_have_all_their_forms", || {
        check_all(
            &alone(
                "pthread_rwlock_t l; struct timespec at = {1, 0};
                 pthread_rwlockattr_t a; pthread_rwlockattr_init(&a);
                 pthread_rwlock_init(&l, &a);
                 assert(!pthread_rwlock_rdlock(&l) && !pthread_rwlock_rdlock(&l));
                 assert(!pthread_rwlock_tryrdlock(&l) && pthread_rwlock_trywrlock(&l) == EBUSY);
                 assert(pthread_rwlock_timedwrlock(&l, &at) == ETIMEDOUT);
                 assert(!pthread_rwlock_timedrdlock(&l, &at));
                 for (int i = 0; i < 4; i++) assert(!pthread_rwlock_unlock(&l));
                 assert(!pthread_rwlock_trywrlock(&l) && pthread_rwlock_tryrdlock(&l) == EBUSY);
                 assert(pthread_rwlock_wrlock(&l) == EDEADLK && pthread_rwlock_rdlock(&l) == EDEADLK);
                 assert(!pthread_rwlock_unlock(&l));
                 assert(!pthread_rwlock_clockwrlock(&l, CLOCK_MONOTONIC, &at));
                 assert(!pthread_rwlock_unlock(&l) && !pthread_rwlock_destroy(&l));",
            ),
            |checked| checked.is_fine_in(1),
        );
        check(&alone(&format!("{RWLOCK} pthread_rwlock_unlock(&l);")))
            .has_bug(ObjectMisuse, "does not hold");
        check(&alone(&format!(
            "{RWLOCK} pthread_rwlock_rdlock(&l); pthread_rwlock_destroy(&l);"
        )))
        .has_bug(ObjectMisuse, "a read-write lock that is locked");
        check(&alone(&format!(
            "{RWLOCK} pthread_rwlock_rdlock(&l); pthread_rwlock_wrlock(&l);"
        )))
        .has_bug(Deadlock, "");
    });
}

const CONDITION: &str = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER; int ready;";

#[test]
fn a_condition_wakes_its_waiter() {
    isolated("a_condition_wakes_its_waiter", || {
        for wake in ["signal", "broadcast"] {
            check_all(
                &two_threads(
                    CONDITION,
                    &format!(
                        "pthread_mutex_lock(&m);
                         if (me == 1) {{ while (!ready) pthread_cond_wait(&c, &m); shared++; }}
                         else {{ ready = 1; pthread_cond_{wake}(&c); }}
                         pthread_mutex_unlock(&m);"
                    ),
                    "",
                    "assert(shared == 1); pthread_cond_destroy(&c); pthread_mutex_destroy(&m);",
                ),
                |checked| checked.is_fine_in(2),
            );
        }
    });
}

#[test]
fn a_lost_signal_deadlocks() {
    isolated("a_lost_signal_deadlocks", || {
        check(&two_threads(
            CONDITION,
            "pthread_mutex_lock(&m);
             if (me == 1) pthread_cond_wait(&c, &m); else pthread_cond_signal(&c);
             pthread_mutex_unlock(&m);",
            "",
            "",
        ))
        .has_bug(Deadlock, "");
    });
}

#[test]
fn a_signal_wakes_one_and_a_broadcast_wakes_all() {
    isolated("a_signal_wakes_one_and_a_broadcast_wakes_all", || {
        let waiters = |wake: &str| {
            two_threads(
                CONDITION,
                "pthread_mutex_lock(&m); shared++; pthread_cond_wait(&c, &m);
                 pthread_mutex_unlock(&m);",
                "",
                "",
            )
            .replace(
                "pthread_join(a, 0);",
                &format!(
                    "for (;;) {{ pthread_mutex_lock(&m); int n = shared; pthread_mutex_unlock(&m);
                       if (n == 2) break; }}
                     pthread_mutex_lock(&m); pthread_cond_{wake}(&c); pthread_mutex_unlock(&m);
                     pthread_join(a, 0);"
                ),
            )
        };
        let settings = Settings {
            unroll: Unroll::all(3),
            ..Settings::default()
        };
        check_with(settings.clone(), &waiters("signal")).has_bug(Deadlock, "");
        check_with(settings, &waiters("broadcast")).is_fine();
    });
}

#[test]
fn a_timed_wait_is_woken_or_times_out() {
    isolated("a_timed_wait_is_woken_or_times_out", || {
        let body = |wait: &str| {
            format!(
                "pthread_mutex_lock(&m); struct timespec at = {{2000000000, 0}};
                 if (me == 1) {{ int r = {wait}; assert(r == 0 || r == ETIMEDOUT); shared = r; }}
                 else pthread_cond_signal(&c);
                 pthread_mutex_unlock(&m);"
            )
        };
        let timed = "pthread_cond_timedwait(&c, &m, &at)";
        let clocked = "pthread_cond_clockwait(&c, &m, CLOCK_MONOTONIC, &at)";
        for wait in [timed, clocked] {
            check(&two_threads(CONDITION, &body(wait), "", "")).is_fine();
            for result in ["shared == 0", "shared == ETIMEDOUT"] {
                let after = format!("assert(!({result}));");
                check(&two_threads(CONDITION, &body(wait), "", &after)).has_bug(Assertion, "");
            }
        }
        check(&program(
            CONDITION,
            "pthread_condattr_t a; pthread_condattr_init(&a); clockid_t k;
             assert(!pthread_condattr_setclock(&a, CLOCK_MONOTONIC));
             assert(!pthread_condattr_getclock(&a, &k) && k == CLOCK_MONOTONIC);
             pthread_cond_init(&c, &a);
             struct timespec now, later; clock_gettime(CLOCK_MONOTONIC, &now); now.tv_sec += 5;
             pthread_mutex_lock(&m);
             assert(pthread_cond_timedwait(&c, &m, &now) == ETIMEDOUT);
             clock_gettime(CLOCK_MONOTONIC, &later);
             assert(later.tv_sec == now.tv_sec && later.tv_nsec > now.tv_nsec);",
        ))
        .is_fine_in(1);
    });
}

#[test]
fn spurious_wake_ups_are_a_setting() {
    isolated("spurious_wake_ups_are_a_setting", || {
        let source = |check: &str| {
            two_threads(
                CONDITION,
                &format!(
                    "pthread_mutex_lock(&m);
                     if (me == 1) {{ {check} (!ready) pthread_cond_wait(&c, &m); assert(ready); }}
                     else {{ ready = 1; pthread_cond_signal(&c); }}
                     pthread_mutex_unlock(&m);"
                ),
                "",
                "",
            )
        };
        let spurious = Settings {
            spurious_wakeups: true,
            ..Settings::default()
        };
        check(&source("if")).is_fine();
        check_with(spurious.clone(), &source("if")).has_bug(Assertion, "ready");
        check_with(spurious, &source("while")).is_fine();
    });
}

#[test]
fn misuse_of_a_condition_is_a_bug() {
    isolated("misuse_of_a_condition_is_a_bug", || {
        check(&program(CONDITION, "pthread_cond_wait(&c, &m);"))
            .has_bug(ObjectMisuse, "without holding the mutex");
        check(&program(
            CONDITION,
            "pthread_cond_destroy(&c); pthread_cond_signal(&c);",
        ))
        .has_bug(ObjectMisuse, "destroyed condition variable");
        check(&two_threads(
            CONDITION,
            "if (me == 1) { pthread_mutex_lock(&m); pthread_cond_wait(&c, &m); }
             else pthread_cond_destroy(&c);",
            "",
            "",
        ))
        .bugs
        .iter()
        .find(|(kind, what)| *kind == ObjectMisuse && what.contains("that threads wait on"))
        .expect("a waiter loses its condition variable");
    });
}

#[test]
fn a_condition_may_be_destroyed_once_all_are_woken() {
    isolated("a_condition_may_be_destroyed_once_all_are_woken", || {
        check(&two_threads(
            "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER; pthread_cond_t *c; int ready, waits;",
            "pthread_mutex_lock(&m);
             if (me == 1) { waits = 1; while (!ready) pthread_cond_wait(c, &m); }
             else if (waits) { ready = 1; pthread_cond_broadcast(c); pthread_mutex_unlock(&m);
                               pthread_cond_destroy(c); free(c); return 0; }
             else ready = 1;
             pthread_mutex_unlock(&m);",
            "c = malloc(sizeof *c); pthread_cond_init(c, 0);",
            "",
        ))
        .is_fine();
    });
}

#[test]
fn a_barrier_holds_until_all_have_come() {
    isolated("a_barrier_holds_until_all_have_come", || {
        check_all(
            &two_threads(
                "pthread_barrier_t b2; int x[3]; atomic_int serial;",
                "for (int round = 1; round <= 2; round++) {
                     x[me] = round; int r = pthread_barrier_wait(&b2);
                     if (r == PTHREAD_BARRIER_SERIAL_THREAD) serial++; else assert(r == 0);
                     assert(x[3 - me] == round); pthread_barrier_wait(&b2); }",
                "pthread_barrier_init(&b2, 0, 2);",
                "assert(serial == 2); assert(!pthread_barrier_destroy(&b2));",
            ),
            |checked| {
                checked.is_fine();
            },
        );
        check(&alone(
            "pthread_barrier_t b; assert(pthread_barrier_init(&b, 0, 0) == EINVAL);
             pthread_barrier_init(&b, 0, 2); pthread_barrier_wait(&b);",
        ))
        .has_bug(Deadlock, "");
        check(&alone(
            "static pthread_barrier_t b; pthread_barrier_wait(&b);",
        ))
        .has_bug(ObjectMisuse, "not initialised");
        check(&two_threads(
            "pthread_barrier_t b2;",
            "if (me == 1) pthread_barrier_wait(&b2); else pthread_barrier_destroy(&b2);",
            "pthread_barrier_init(&b2, 0, 2);",
            "",
        ))
        .bugs
        .iter()
        .find(|(kind, what)| *kind == ObjectMisuse && what.contains("that threads wait at"))
        .expect("a waiter loses its barrier");
    });
}

#[test]
fn a_barrier_may_go_as_soon_as_it_has_opened() {
    isolated("a_barrier_may_go_as_soon_as_it_has_opened", || {
        check(&two_threads(
            "pthread_barrier_t *b2;",
            "if (pthread_barrier_wait(b2) == PTHREAD_BARRIER_SERIAL_THREAD) {
                 pthread_barrier_destroy(b2); free(b2); }",
            "b2 = malloc(sizeof *b2); pthread_barrier_init(b2, 0, 2);",
            "",
        ))
        .is_fine();
    });
}

#[test]
fn semaphores_count() {
    isolated("semaphores_count", || {
        check_all(
            &two_threads(
                "sem_t s;",
                "if (me == 1) { sem_wait(&s); assert(shared == 5); } else { shared = 5; sem_post(&s); }",
                "sem_init(&s, 0, 0);",
                "int v; assert(!sem_getvalue(&s, &v) && v == 0); assert(!sem_destroy(&s));",
            ),
            |checked| checked.is_fine_in(1),
        );
        check(&alone(
            "sem_t s; struct timespec at = {1, 0}; sem_init(&s, 0, 2);
             assert(!sem_wait(&s) && !sem_trywait(&s));
             errno = 0; assert(sem_trywait(&s) == -1 && errno == EAGAIN);
             errno = 0; assert(sem_timedwait(&s, &at) == -1 && errno == ETIMEDOUT);
             assert(!sem_post(&s) && !sem_timedwait(&s, &at));",
        ))
        .is_fine_in(1);
        check(&alone("sem_t s; sem_init(&s, 0, 0); sem_wait(&s);")).has_bug(Deadlock, "");
        check(&alone(
            "sem_t s; sem_init(&s, 0, 1); sem_destroy(&s); sem_wait(&s);",
        ))
        .has_bug(ObjectMisuse, "destroyed semaphore");
    });
}

#[test]
fn once_runs_once_and_everybody_waits_for_it() {
    isolated("once_runs_once_and_everybody_waits_for_it", || {
        check_all(
            &two_threads(
                // The memory behind the four bytes of a control is not part of it.
                "struct { pthread_once_t once; int neighbour; } o = { PTHREAD_ONCE_INIT, 9 };
                 static void routine(void) { shared++; }",
                "pthread_once(&o.once, routine); assert(shared == 1);
                 pthread_once(&o.once, routine);",
                "",
                "assert(shared == 1);",
            ),
            |checked| checked.is_fine_in(2),
        );
    });
}
