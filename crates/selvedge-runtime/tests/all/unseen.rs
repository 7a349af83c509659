//! What nobody announces, and stores that nobody sees: the search never goes on as if nothing had
//! happened.
//!
//! Here no scan looks at programs, so what the command line would announce or refuse beforehand
//! reaches the runtime.

use selvedge_runtime::Settings;

use crate::common::ends::{End, end, refusal};
use crate::common::{Build, CLANG, GCC, Program, isolated};

/// A program with a function that writes without a word.
fn silent(declarations: &str, body: &str) -> String {
    format!(
        "#include <pthread.h>\n#include <stdatomic.h>\n#include <stdlib.h>\n
         __attribute__((noinline, no_sanitize(\"thread\")))
         static void silently(void *to) {{ *(volatile int *)to = 7; }}
         {declarations}
         int main(void) {{ {body} return 0; }}"
    )
}

const CHANGED: &str = "which was changed by something that Selvedge does not see";

#[test]
fn a_silent_write_to_a_global_is_noticed_at_the_next_access() {
    isolated(
        "a_silent_write_to_a_global_is_noticed_at_the_next_access",
        || {
            let body = "atomic_store(&x, 1); silently(&x); atomic_load(&x);";
            for build in Build::installed(&[GCC, CLANG]) {
                let why = refusal(build, &silent("atomic_int x;", body), Settings::default());
                assert_eq!(why, format!("atomic read of 4 bytes of `x`, {CHANGED}"));
            }
        },
    );
}

#[test]
fn a_silent_write_to_a_global_is_noticed_at_the_end() {
    isolated("a_silent_write_to_a_global_is_noticed_at_the_end", || {
        let body = "atomic_store(&x, 1); silently(&x);";
        let why = refusal(GCC, &silent("atomic_int x;", body), Settings::default());
        assert_eq!(why, format!("read of 4 bytes of `x`, {CHANGED}"));
    });
}

#[test]
fn a_silent_write_to_a_block_is_noticed_when_it_is_freed() {
    isolated(
        "a_silent_write_to_a_block_is_noticed_when_it_is_freed",
        || {
            let body = "atomic_int *x = malloc(4); atomic_store(x, 1); silently(x); free(x);";
            let why = refusal(GCC, &silent("", body), Settings::default());
            assert!(why.starts_with("free of "), "{why}");
            assert!(why.ends_with(CHANGED), "{why}");
        },
    );
}

#[test]
fn a_silent_write_to_the_stack_of_another_thread_is_noticed() {
    isolated(
        "a_silent_write_to_the_stack_of_another_thread_is_noticed",
        || {
            let threads = "static void *f(void *p) { atomic_store((atomic_int *)p, 1); silently(p);
                return (void *)(long)atomic_load((atomic_int *)p); }";
            let body =
                "atomic_int x; pthread_t a; pthread_create(&a, 0, f, &x); pthread_join(a, 0);";
            let why = refusal(GCC, &silent(threads, body), Settings::default());
            assert!(why.ends_with(CHANGED), "{why}");
        },
    );
}

#[test]
fn a_silent_write_to_the_own_stack_is_the_thread_s_own() {
    isolated(
        "a_silent_write_to_the_own_stack_is_the_thread_s_own",
        || {
            let body = "atomic_int x; atomic_store(&x, 1); silently(&x);
                    if (atomic_load(&x) != 7) abort();";
            let program = Program::build(GCC, &silent("", body));
            let mut machine = program.load(Settings::default());
            crate::common::driver::Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Complete);
        },
    );
}

#[test]
fn a_store_without_a_check_behind_it_is_missed() {
    isolated("a_store_without_a_check_behind_it_is_missed", || {
        let source = "volatile int x; int main(void) { x = 1; return x; }";
        for build in Build::installed(&[GCC, CLANG]) {
            let program = Program::build_unchecked(build, source);
            let mut machine = program.load(Settings::default());
            crate::common::driver::Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Refused);
            let why = selvedge_core::Machine::refusal(&machine).expect("a reason");
            let noticed = why.ends_with(CHANGED) || why.ends_with("instruction cannot be found");
            assert!(noticed, "{why}");
        }
    });
}
