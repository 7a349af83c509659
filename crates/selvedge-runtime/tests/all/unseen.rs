//! Accesses that are not announced, and stores that are not noticed: the search never goes on as if
//! nothing had happened.
//!
//! Here no scan looks at programs, so what the command line would announce or refuse beforehand
//! reaches the runtime.

use selvedge_runtime::{Protection, Settings};

use crate::common::ends::{End, end, refusal};
use crate::common::{Build, CLANG, CLANG_O2, GCC, GCC_O2, Program, isolated, isolated_without};

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

/// Here nobody adds the announcements that compilers forget: of structures that functions return, and of bit
/// fields of three bytes.
#[test]
fn a_store_that_the_compiler_did_not_announce_is_noticed() {
    isolated(
        "a_store_that_the_compiler_did_not_announce_is_noticed",
        || {
            let declarations = "struct big { int v[8]; };
                struct small { unsigned a : 24; } __attribute__((packed));
                union { struct big big; struct small small; atomic_int x; } g;
                __attribute__((noinline)) static struct big make(void) {
                    struct big b = {{7}}; return b; }";
            for (builds, store) in [
                (&[GCC, GCC_O2][..], "g.big = make();"),
                (&[CLANG_O2][..], "g.small.a = 77;"),
            ] {
                let body = format!("atomic_store(&g.x, 1); {store} atomic_load(&g.x);");
                for build in Build::installed(builds) {
                    let source = silent(declarations, &body);
                    let why = refusal(build, &source, Settings::default());
                    assert_eq!(why, format!("atomic read of 4 bytes of `g`, {CHANGED}"));
                }
            }
        },
    );
}

/// Where no function tells that it is entered or left, memory begins no new life: what the thread itself
/// puts there counts all the same.
#[test]
fn memory_without_lifetimes_holds_what_was_put_there() {
    isolated("memory_without_lifetimes_holds_what_was_put_there", || {
        let declarations = "struct node { _Atomic(struct node *) next; atomic_int locked; };
            __attribute__((noinline)) static int f(void) { struct node n = {0};
                int w = atomic_load(&n.locked); atomic_store(&n.locked, 1); return w; }";
        for build in Build::installed(&[GCC, GCC_O2, CLANG, CLANG_O2]) {
            let flags = match build.compiler {
                "gcc" => ["--param", "tsan-instrument-func-entry-exit=0"],
                _ => ["-mllvm", "-tsan-instrument-func-entry-exit=0"],
            };
            for (wrong, fails) in [("!=", false), ("==", true)] {
                let body = format!("f(); if (f() {wrong} 0) abort();");
                let source = silent(declarations, &body);
                let program = Program::build_from(build, "program.c", &source, &flags);
                let mut machine = program.load(Settings::default());
                crate::common::driver::Driver::first(&mut machine);
                let end = end(&machine);
                assert_eq!(matches!(end, End::Failed(_)), fails, "{build:?} {end:?}");
                assert_eq!(end == End::Complete, !fails, "{build:?} {end:?}");
            }
        }
    });
}

/// A variable of the thread's own function holds what the thread put there, and with the function it is gone:
/// there is nothing to compare when its frame ends.
#[test]
fn a_silent_write_to_a_frame_ends_with_it() {
    isolated("a_silent_write_to_a_frame_ends_with_it", || {
        let declarations = "__attribute__((noinline)) static int f(int n) {
            atomic_int x; atomic_init(&x, n); int seen = atomic_load(&x); silently(&x);
            return seen; }";
        let body = "if (f(1) != 1 || f(2) != 2) abort();";
        for build in Build::installed(&[GCC, GCC_O2, CLANG, CLANG_O2]) {
            let program = Program::build(build, &silent(declarations, body));
            let mut machine = program.load(Settings::default());
            crate::common::driver::Driver::first(&mut machine);
            assert_eq!(end(&machine), End::Complete, "{build:?}");
        }
    });
}

/// The headers and the variable of the tests below.
const SHARED: &str = "#define _GNU_SOURCE\n#include <math.h>\n#include <stdio.h>\n#include <string.h>\n
    union { _Atomic long whole; atomic_int part; char text[8]; struct { int first, second; } pair; } u;";

/// Every way in which a library function writes: in C's headers, by the runtime, by the host, by the shim.
const CALLS: [&str; 6] = [
    "memset(u.text, 7, 4);",
    "memcpy(u.text, \"abc\", 4);",
    "strcpy(u.text, \"abc\");",
    "snprintf(u.text, 8, \"abc\");",
    "frexp(16, &u.pair.first);",
    "sscanf(\"7\", \"%d\", &u.pair.first);",
];

/// Writes of other sizes than the atomic accesses.
const WRITES: [&str; 2] = ["atomic_store(&u.whole, 7);", "*(volatile long *)&u = 7;"];

/// Whether every program that makes one of the `writes` between two atomic accesses is refused.
fn are_refused(writes: &[&str]) -> bool {
    let refused = |build: Build, write: &str| {
        let body = format!("atomic_store(&u.part, 1); {write} atomic_load(&u.part);");
        let program = Program::build(build, &silent(SHARED, &body));
        let mut machine = program.load(Settings::default());
        crate::common::driver::Driver::first(&mut machine);
        let end = end(&machine);
        if end == End::Refused {
            let why = selvedge_core::Machine::refusal(&machine).expect("a reason");
            assert_eq!(why, format!("atomic read of 4 bytes of `u`, {CHANGED}"));
        }
        end == End::Refused
    };
    let builds = Build::installed(&[GCC, CLANG, GCC_O2, CLANG_O2]);
    let all = builds.flat_map(|build| writes.iter().map(move |write| (build, write)));
    let refused: Vec<bool> = all.map(|(build, write)| refused(build, write)).collect();
    let first = refused[0];
    assert!(refused.iter().all(|&it| it == first), "{refused:?}");
    first
}

#[test]
fn what_library_functions_write_is_noticed_where_nothing_announces_it() {
    isolated_without(
        "what_library_functions_write_is_noticed_where_nothing_announces_it",
        Protection::Library,
        || assert!(are_refused(&CALLS)),
    );
}

#[test]
fn what_library_functions_write_is_announced() {
    isolated("what_library_functions_write_is_announced", || {
        assert!(!are_refused(&CALLS));
    });
}

#[test]
fn writes_of_other_sizes_are_noticed_where_nothing_tells_of_them() {
    isolated_without(
        "writes_of_other_sizes_are_noticed_where_nothing_tells_of_them",
        Protection::Sizes,
        || assert!(are_refused(&WRITES)),
    );
}

#[test]
fn writes_of_other_sizes_are_told_to_the_locations_they_overlap() {
    isolated(
        "writes_of_other_sizes_are_told_to_the_locations_they_overlap",
        || assert!(!are_refused(&WRITES)),
    );
}
