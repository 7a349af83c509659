//! Random programs in which threads take a mutex, look, and give it back until they see what they wait for, or wait
//! on a condition variable with a time-out or for a futex.
//! Stopping them after an iteration that saw nothing is compared with exploring a few iterations.

use selvedge_core::FailureKind;
use selvedge_core::model::{Model, Rc11, SequentialConsistency};
use selvedge_core::random::Random;
use selvedge_runtime::{Settings, Unroll};

use crate::common::many::{self, ByProgram, ManyPrograms};
use crate::common::search::check_with;
use crate::common::{Build, CLANG, GCC, Program, isolated};

const PROGRAMS: u32 = 40;

const HEAD: &str = "#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <stdatomic.h>
#include \"selvedge.h\"
static pthread_mutex_t m[2] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER };
static pthread_cond_t c[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static const struct timespec soon = { 1, 0 };
static int value[2];
static atomic_int flag, out[3];
";

/// A statement of a thread. Each loop ends once another thread has written.
fn statement(random: &mut Random) -> String {
    let lock = random.below(2);
    let take = format!("pthread_mutex_lock(&m[{lock}]);");
    let give = format!("pthread_mutex_unlock(&m[{lock}]);");
    let at_least = 1 + random.below(2);
    match random.below(12) {
        0 => format!(
            "for (;;) {{ {take} if (value[{lock}] >= {at_least}) break; {give} }} r = 10 * r + value[{lock}]; {give}"
        ),
        1 => format!(
            "for (;;) {{ {take} int v = value[{lock}]; {give} if (v >= {at_least}) {{ r = 10 * r + v; break; }} }}"
        ),
        2 => format!(
            "for (;;) {{ {take} int f = atomic_load(&flag); {give} if (f) {{ r = 10 * r + f; break; }} }}"
        ),
        3 => format!(
            "{take} while (value[{lock}] < {at_least}) {{ {give} {take} }} r = 10 * r + value[{lock}]; {give}"
        ),
        4 => format!(
            "{take} while (value[{lock}] < {at_least}) pthread_cond_timedwait(&c[{lock}], &m[{lock}], &soon); \
             r = 10 * r + value[{lock}]; {give}"
        ),
        5 => format!(
            "for (;;) {{ {take} int w = value[{lock}] < {at_least} && \
             pthread_cond_timedwait(&c[{lock}], &m[{lock}], &soon); int v = value[{lock}]; {give} \
             if (v >= {at_least}) {{ r = 10 * r + v + 5 * !w; break; }} }}"
        ),
        6 => format!("{take} value[{lock}]++; pthread_cond_signal(&c[{lock}]); {give}"),
        9 => format!(
            "for (;;) {{ int f = atomic_load(&flag); if (f >= {at_least}) {{ r = 10 * r + f; break; }} \
             syscall(SYS_futex, &flag, FUTEX_WAIT_PRIVATE, f, 0); }}"
        ),
        10 => "atomic_fetch_add(&flag, 1); syscall(SYS_futex, &flag, FUTEX_WAKE_PRIVATE, 8);"
            .to_owned(),
        7 => format!("atomic_fetch_add(&flag, 1); {take} value[{lock}]++; {give}"),
        8 => format!("{take} r = 10 * r + value[{lock}]++; {give}"),
        _ => format!("{take} value[{lock}] += 2; {give} r = 10 * r + atomic_load(&flag);"),
    }
}

fn program(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut programs = ManyPrograms::new(HEAD);
    for _ in 0..PROGRAMS {
        let threads = 2 + random.below(2) as usize;
        let bodies = (0..threads).map(|me| {
            let statements = 1 + random.below(4 - threads as u64);
            let text: String = (0..statements).map(|_| statement(&mut random)).collect();
            format!("int r = 0; {text} atomic_store(&out[{me}], r);")
        });
        programs.add(&bodies.collect::<Vec<_>>());
    }
    programs.finish(
        "atomic_load(&out[0]); atomic_load(&out[1]); atomic_load(&out[2]);
         atomic_store(&flag, value[0] + 10 * value[1]);",
    )
}

fn explore<C: Model>(program: &Program, watch_locks: bool) -> (ByProgram, u64) {
    let unroll = match watch_locks {
        true => Unroll::default(),
        false => Unroll::all(2),
    };
    let settings = Settings {
        watch_locks,
        unroll,
        ..Settings::default()
    };
    let (all, bugs) = many::explore::<C>(program, settings);
    for bug in bugs {
        let kind = bug.failure.kind;
        assert!(
            matches!(kind, FailureKind::Livelock | FailureKind::Deadlock),
            "{kind:?}"
        );
    }
    let executions = all.executions.values().sum();
    (all, executions)
}

fn check<C: Model>(build: Build, seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let program = Program::build_from(
            build,
            "looks.c",
            &program(seed),
            build.marks(&Settings {
                unroll: Unroll::all(2),
                ..Settings::default()
            }),
        );
        let (stopped, few) = explore::<C>(&program, true);
        let (unrolled, many) = explore::<C>(&program, false);
        for number in 0..PROGRAMS {
            let place = format!("program {number} of seed {seed}, {build:?}");
            assert_eq!(
                stopped.finals.get(&number),
                unrolled.finals.get(&number),
                "{place}"
            );
        }
        assert!(few < many, "{few} executions instead of {many}");
        assert!(!stopped.stuck.is_empty(), "some programs never end");
    }
}

#[test]
fn looking_under_a_mutex_again_and_again_loses_nothing() {
    isolated(
        "looking_under_a_mutex_again_and_again_loses_nothing",
        || {
            check::<SequentialConsistency>(GCC, 0..8);
            check::<Rc11>(GCC, 9..12);
            for build in Build::installed(&[CLANG]) {
                check::<Rc11>(build, 13..15);
            }
        },
    );
}

/// A thread that looks under a mutex whether it may stop, beside another one.
fn looker(other: &str) -> String {
    format!(
        "#include <pthread.h>
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static int ready;
         static void *look(void *p) {{
             for (;;) {{
                 pthread_mutex_lock(&m);
                 if (ready) break;
                 pthread_mutex_unlock(&m);
             }}
             pthread_mutex_unlock(&m);
             return 0;
         }}
         static void *other(void *p) {{ {other} return 0; }}
         int main(void) {{
             pthread_t a, b;
             pthread_create(&a, 0, look, 0);
             pthread_create(&b, 0, other, 0);
             pthread_join(a, 0);
             pthread_join(b, 0);
             return 0;
         }}"
    )
}

fn watching() -> Settings {
    Settings {
        watch_locks: true,
        ..Settings::default()
    }
}

#[test]
fn looking_under_a_mutex_costs_no_executions() {
    isolated("looking_under_a_mutex_costs_no_executions", || {
        let other = "pthread_mutex_lock(&m); ready = 1; pthread_mutex_unlock(&m);";
        check_with(watching(), &looker(other)).is_fine_in(1);
    });
}

#[test]
fn looking_for_what_never_comes_is_endless() {
    isolated("looking_for_what_never_comes_is_endless", || {
        let other = "pthread_mutex_lock(&m); pthread_mutex_unlock(&m);";
        let found = check_with(watching(), &looker(other));
        found.has_bug(FailureKind::Livelock, "spins for ever");
    });
}

/// A thread that waits on a condition variable with a time-out until it may stop, beside another one.
fn waiter(other: &str) -> String {
    format!(
        "#include <pthread.h>
         #include <time.h>
         static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
         static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
         static const struct timespec soon = {{ 1, 0 }};
         static int ready;
         static void *wait(void *p) {{
             pthread_mutex_lock(&m);
             while (!ready) pthread_cond_timedwait(&c, &m, &soon);
             pthread_mutex_unlock(&m);
             return 0;
         }}
         static void *other(void *p) {{ {other} return 0; }}
         int main(void) {{
             pthread_t a, b;
             pthread_create(&a, 0, wait, 0);
             pthread_create(&b, 0, other, 0);
             pthread_join(a, 0);
             pthread_join(b, 0);
             return 0;
         }}"
    )
}

/// The other thread comes first, or gets in during the first wait, or wakes the thread during the first or second one.
#[test]
fn waiting_again_after_a_time_out_costs_no_executions() {
    isolated("waiting_again_after_a_time_out_costs_no_executions", || {
        let other =
            "pthread_mutex_lock(&m); ready = 1; pthread_cond_signal(&c); pthread_mutex_unlock(&m);";
        check_with(watching(), &waiter(other)).is_fine_in(4);
        let silent = "pthread_mutex_lock(&m); ready = 1; pthread_mutex_unlock(&m);";
        check_with(watching(), &waiter(silent)).is_fine_in(2);
    });
}

#[test]
fn waiting_with_time_outs_for_what_never_comes_is_endless() {
    isolated(
        "waiting_with_time_outs_for_what_never_comes_is_endless",
        || {
            let other =
                "pthread_mutex_lock(&m); pthread_cond_signal(&c); pthread_mutex_unlock(&m);";
            let found = check_with(watching(), &waiter(other));
            found.has_bug(FailureKind::Livelock, "spins for ever");
        },
    );
}

/// The other thread ends the loop only if it saw that the mutex was held meanwhile.
#[test]
fn a_look_that_another_thread_notices_is_kept() {
    isolated("a_look_that_another_thread_notices_is_kept", || {
        let source = "#include <pthread.h>
            #include <stdatomic.h>
            #include \"selvedge.h\"
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            static atomic_int ready;
            static void *look(void *p) {
                for (;;) {
                    pthread_mutex_lock(&m);
                    int r = ready;
                    pthread_mutex_unlock(&m);
                    if (r) break;
                }
                selvedge_assert(0);
                return 0;
            }
            static void *other(void *p) {
                if (pthread_mutex_trylock(&m)) ready = 1;
                else pthread_mutex_unlock(&m);
                return 0;
            }
            int main(void) {
                pthread_t a, b;
                pthread_create(&a, 0, look, 0);
                pthread_create(&b, 0, other, 0);
                pthread_join(b, 0);
                return 0;
            }";
        let settings = Settings {
            unroll: Unroll::all(3),
            ..watching()
        };
        let found = check_with(settings, source);
        found.has_bug(FailureKind::Assertion, "");
    });
}

/// The thread holds the mutex where it looks, and lets others in by giving it back.
#[test]
fn letting_others_in_while_holding_a_mutex_is_kept() {
    isolated("letting_others_in_while_holding_a_mutex_is_kept", || {
        let source = "#include <pthread.h>
            #include <stdatomic.h>
            static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
            static atomic_int ready;
            static void *look(void *p) {
                pthread_mutex_lock(&m);
                while (!atomic_load(&ready)) {
                    pthread_mutex_unlock(&m);
                    pthread_mutex_lock(&m);
                }
                pthread_mutex_unlock(&m);
                return 0;
            }
            int main(void) {
                pthread_t a;
                pthread_create(&a, 0, look, 0);
                pthread_mutex_lock(&m);
                atomic_store(&ready, 1);
                pthread_mutex_unlock(&m);
                pthread_join(a, 0);
                return 0;
            }";
        let executions = |watch_locks| {
            let settings = Settings {
                watch_locks,
                unroll: Unroll::all(3),
                ..Settings::default()
            };
            check_with(settings, source).is_fine().executions
        };
        // Further looks change nothing. The thread is let in at once, or has to let the other one in.
        assert_eq!((executions(true), executions(false)), (2, 3));
    });
}

#[test]
fn waiting_for_a_moment_ends() {
    isolated("waiting_for_a_moment_ends", || {
        let source = "#include <pthread.h>
            #include <stdatomic.h>
            #include <time.h>
            static atomic_int flag;
            static void *look(void *p) {
                time_t end = time(0) + 3600;
                while (!atomic_load(&flag) && time(0) < end);
                return 0;
            }
            int main(void) {
                pthread_t a;
                pthread_create(&a, 0, look, 0);
                atomic_store(&flag, 1);
                pthread_join(a, 0);
                return 0;
            }";
        check_with(Settings::default(), source).is_fine();
    });
}
