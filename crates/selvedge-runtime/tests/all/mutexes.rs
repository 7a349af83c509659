//! Mutexes of all types, and spin locks.

use selvedge_core::FailureKind::{Assertion, Deadlock, ObjectMisuse};

use crate::common::isolated;
use crate::common::programs::{alone, two_threads};
use crate::common::search::{check, check_all};

#[test]
fn a_mutex_excludes_and_its_critical_sections_come_in_every_order() {
    isolated(
        "a_mutex_excludes_and_its_critical_sections_come_in_every_order",
        || {
            let source = two_threads(
                "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;",
                "pthread_mutex_lock(&m); shared++; pthread_mutex_unlock(&m);",
                "",
                "assert(shared == 2); pthread_mutex_destroy(&m);",
            );
            check_all(&source, |checked| checked.is_fine_in(2));
        },
    );
}

#[test]
fn locking_in_opposite_orders_deadlocks() {
    isolated("locking_in_opposite_orders_deadlocks", || {
        let source = two_threads(
            "pthread_mutex_t m[3];",
            "pthread_mutex_lock(&m[me]); pthread_mutex_lock(&m[3 - me]);
             pthread_mutex_unlock(&m[me]); pthread_mutex_unlock(&m[3 - me]);",
            "pthread_mutex_init(&m[1], 0); pthread_mutex_init(&m[2], 0);",
            "",
        );
        check(&source).has_bug(Deadlock, "");
    });
}

#[test]
fn relocking_depends_on_the_type() {
    isolated("relocking_depends_on_the_type", || {
        let of_type = |kind: &str, body: &str| {
            check(&alone(&format!(
                "pthread_mutexattr_t a; pthread_mutex_t m; int kind;
                 pthread_mutexattr_init(&a);
                 assert(pthread_mutexattr_settype(&a, {kind}) == 0);
                 assert(pthread_mutexattr_gettype(&a, &kind) == 0 && kind == {kind});
                 pthread_mutex_init(&m, &a); pthread_mutexattr_destroy(&a);
                 assert(pthread_mutex_lock(&m) == 0);
                 {body}"
            )))
        };
        of_type("PTHREAD_MUTEX_NORMAL", "pthread_mutex_lock(&m);").has_bug(Deadlock, "");
        of_type("PTHREAD_MUTEX_ADAPTIVE_NP", "pthread_mutex_lock(&m);").has_bug(Deadlock, "");
        of_type(
            "PTHREAD_MUTEX_NORMAL",
            "assert(pthread_mutex_trylock(&m) == EBUSY); pthread_mutex_unlock(&m);",
        )
        .is_fine();
        of_type(
            "PTHREAD_MUTEX_ERRORCHECK",
            "assert(pthread_mutex_lock(&m) == EDEADLK); assert(pthread_mutex_unlock(&m) == 0);
             assert(pthread_mutex_unlock(&m) == EPERM);",
        )
        .is_fine();
        of_type(
            "PTHREAD_MUTEX_RECURSIVE",
            "assert(pthread_mutex_lock(&m) == 0); assert(pthread_mutex_trylock(&m) == 0);
             for (int i = 0; i < 3; i++) assert(pthread_mutex_unlock(&m) == 0);
             assert(pthread_mutex_unlock(&m) == EPERM); assert(pthread_mutex_destroy(&m) == 0);",
        )
        .is_fine();
    });
}

#[test]
fn static_initialisers_carry_the_type() {
    isolated("static_initialisers_carry_the_type", || {
        check_all(
            &alone(
                "static pthread_mutex_t r = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
                 static pthread_mutex_t e = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
                 static pthread_mutex_t a = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
                 assert(!pthread_mutex_lock(&r) && !pthread_mutex_lock(&r));
                 assert(!pthread_mutex_lock(&e) && pthread_mutex_lock(&e) == EDEADLK);
                 assert(!pthread_mutex_lock(&a) && pthread_mutex_trylock(&a) == EBUSY);",
            ),
            |checked| checked.is_fine_in(1),
        );
    });
}

#[test]
fn a_recursive_mutex_is_released_by_the_last_unlock() {
    isolated("a_recursive_mutex_is_released_by_the_last_unlock", || {
        let source = two_threads(
            "pthread_mutex_t m = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;",
            "pthread_mutex_lock(&m); pthread_mutex_lock(&m); pthread_mutex_unlock(&m); shared++;
             pthread_mutex_unlock(&m);",
            "",
            "assert(shared == 2);",
        );
        check(&source).is_fine_in(2);
    });
}

#[test]
fn try_lock_and_timed_lock_succeed_or_fail() {
    isolated("try_lock_and_timed_lock_succeed_or_fail", || {
        for (attempt, code) in [
            ("pthread_mutex_trylock(&m)", "EBUSY"),
            ("pthread_mutex_timedlock(&m, &at)", "ETIMEDOUT"),
            (
                "pthread_mutex_clocklock(&m, CLOCK_MONOTONIC, &at)",
                "ETIMEDOUT",
            ),
        ] {
            let body = format!(
                "struct timespec at = {{1, 0}}; int r = {attempt};
                 if (r == 0) {{ shared++; pthread_mutex_unlock(&m); }} else assert(r == {code});"
            );
            let globals = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
            check(&two_threads(globals, &body, "", "assert(shared >= 1);")).is_fine_in(4);
            check(&two_threads(globals, &body, "", "assert(shared == 2);"))
                .has_bug(Assertion, "shared == 2");
        }
    });
}

#[test]
fn a_malformed_deadline_is_an_error() {
    isolated("a_malformed_deadline_is_an_error", || {
        check(&alone(
            "pthread_mutex_t m; pthread_mutex_init(&m, 0); struct timespec at = {0, 1000000000};
             assert(pthread_mutex_timedlock(&m, &at) == EINVAL);",
        ))
        .is_fine();
    });
}

#[test]
fn misuse_of_a_mutex_is_a_bug() {
    isolated("misuse_of_a_mutex_is_a_bug", || {
        let global = "pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;";
        check(&alone(&format!("{global} pthread_mutex_unlock(&m);")))
            .has_bug(ObjectMisuse, "does not hold");
        check(&alone(&format!(
            "{global} pthread_mutex_lock(&m); pthread_mutex_destroy(&m);"
        )))
        .has_bug(ObjectMisuse, "that is locked");
        check(&alone(&format!(
            "{global} pthread_mutex_destroy(&m); pthread_mutex_lock(&m);"
        )))
        .has_bug(ObjectMisuse, "destroyed mutex");
        check(&alone(&format!(
            "{global} pthread_mutex_destroy(&m); pthread_mutex_destroy(&m);"
        )))
        .has_bug(ObjectMisuse, "destroyed mutex");
        check(&two_threads(
            global,
            "if (me == 1) pthread_mutex_lock(&m); else pthread_mutex_unlock(&m);",
            "",
            "",
        ))
        .has_bug(
            ObjectMisuse,
            "unlock of `m`, a mutex that the thread does not hold",
        );
        check(&two_threads(
            global,
            "if (me == 1) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); }
             else pthread_mutex_destroy(&m);",
            "",
            "",
        ))
        .has_bug(ObjectMisuse, "");
    });
}

#[test]
fn a_destroyed_mutex_can_be_initialised_again() {
    isolated("a_destroyed_mutex_can_be_initialised_again", || {
        check(&alone(
            "pthread_mutex_t m; for (int i = 0; i < 3; i++) {
                 pthread_mutex_init(&m, 0); pthread_mutex_lock(&m); pthread_mutex_unlock(&m);
                 pthread_mutex_destroy(&m); }",
        ))
        .is_fine_in(1);
    });
}

#[test]
fn robust_mutexes_are_refused() {
    isolated("robust_mutexes_are_refused", || {
        check(&alone(
            "pthread_mutexattr_t a; pthread_mutexattr_init(&a);
             pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);",
        ))
        .is_refused("pthread_mutexattr_setrobust");
    });
}

#[test]
fn spin_locks_exclude() {
    isolated("spin_locks_exclude", || {
        let globals = "pthread_spinlock_t s; int neighbour = 77;";
        let before = "pthread_spin_init(&s, PTHREAD_PROCESS_PRIVATE);";
        check_all(
            &two_threads(
                globals,
                "pthread_spin_lock(&s); shared++; pthread_spin_unlock(&s);",
                before,
                "assert(shared == 2); pthread_spin_destroy(&s);",
            ),
            |checked| checked.is_fine_in(2),
        );
        check(&two_threads(
            globals,
            "if (pthread_spin_trylock(&s) == 0) { shared++; pthread_spin_unlock(&s); }",
            before,
            "assert(shared >= 1);",
        ))
        .is_fine_in(4);
        check(&two_threads(
            globals,
            "pthread_spin_unlock(&s);",
            before,
            "",
        ))
        .has_bug(ObjectMisuse, "spin lock");
    });
}
