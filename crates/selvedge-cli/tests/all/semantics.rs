//! What C says about memory and about the end of the program.

use crate::common::{Outcome, Sandbox, compilers};

/// One thread frees what the other writes, after each has read `y`.
fn freed_and_written(write: &str, after: &str) -> String {
    format!(
        "#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int y;
static int *q;
static void *frees(void *unused) {{ if (y == {after}) free(q); return unused; }}
static void *writes(void *unused) {{ atomic_load(&y); {write}; y = 1; return unused; }}
int main(void) {{
    pthread_t a, b;
    q = malloc(sizeof *q);
    pthread_create(&a, 0, frees, 0);
    pthread_create(&b, 0, writes, 0);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return 0;
}}
"
    )
}

#[test]
fn a_free_that_nothing_orders_with_an_access_is_found_in_any_order() {
    let writes = [
        "*q = 1",
        "*(volatile int *)q = 1",
        "atomic_store((atomic_int *)q, 1)",
    ];
    let options: [&[&str]; 4] = [
        &[],
        &["--model", "sc", "--plain", "sc"],
        &["--model", "sc", "--algorithm", "source-dpor"],
        &["--model", "ra", "--equivalence", "reads-from"],
    ];
    for compiler in compilers() {
        for write in writes {
            let wrong = Sandbox::with("free.c", &freed_and_written(write, "0"));
            let right = Sandbox::with("free.c", &freed_and_written(write, "1"));
            for options in options {
                let verify = ["verify", "free.c", "--cc", compiler];
                let traced = [&verify, options, &["--trace-out", "trace"]].concat();
                wrong
                    .run(&traced)
                    .ends_with(1)
                    .prints("bug: use after free");
                wrong.run(&["replay", "trace"]).ends_with(1);
                right.run(&[&verify, options].concat()).ends_with(0);
            }
        }
    }
}

/// The explorers that differ in how they see the end of an execution.
const EXPLORERS: [&[&str]; 5] = [
    &[],
    &["--model", "sc", "--algorithm", "source-dpor"],
    &["--model", "ra", "--equivalence", "reads-from"],
    &["--model", "sc", "--algorithm", "csdr"],
    &["--preemptions", "2"],
];

/// What all explorers say of a program.
fn check(source: &str, expect: impl Fn(&Outcome)) {
    let sandbox = Sandbox::with("end.c", source);
    for options in EXPLORERS {
        expect(&sandbox.run(&[&["verify", "end.c"], options].concat()));
    }
}

/// Main starts a thread and ends in a certain way.
fn thread_and_end(thread: &str, handler: &str, end: &str) -> String {
    format!(
        "#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static int shared;
static atomic_int flag;
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER, n = PTHREAD_MUTEX_INITIALIZER;
static void handler(void) {{ {handler} }}
static void *run(void *unused) {{ {thread} return unused; }}
int main(void) {{
    pthread_t thread;
    atexit(handler);
    pthread_mutex_lock(&m);
    pthread_create(&thread, 0, run, 0);
    {end};
}}
"
    )
}

#[test]
fn threads_that_still_wait_when_main_returns_are_no_deadlock() {
    for wait in ["pthread_mutex_lock(&m);", "while (!flag) { }"] {
        for end in ["return 0", "exit(0)"] {
            check(&thread_and_end(wait, "", end), |outcome| {
                outcome.ends_with(0);
            });
        }
    }
    for end in ["pthread_exit(0)", "pthread_join(thread, 0)"] {
        let source = thread_and_end("pthread_mutex_lock(&m);", "", end);
        check(&source, |outcome| {
            outcome.ends_with(1).prints("bug: deadlock");
        });
    }
}

#[test]
fn threads_that_wait_for_each_other_are_a_deadlock_only_if_main_cannot_return() {
    let crossed = "static void *other(void *unused) {
        pthread_mutex_lock(&n); flag = 1; pthread_mutex_lock(&l); return unused;
    }";
    let run = "pthread_t two; pthread_mutex_lock(&l); pthread_create(&two, 0, other, 0);
        while (!flag) { } pthread_mutex_lock(&n);";
    for (end, status) in [("return 0", 0), ("pthread_join(thread, 0)", 1)] {
        let source = thread_and_end(run, "", end).replace(
            "static void handler",
            &format!(
                "static pthread_mutex_t l = PTHREAD_MUTEX_INITIALIZER;\n{crossed}\nstatic void handler"
            ),
        );
        check(&source, |outcome| {
            outcome.ends_with(status);
        });
    }
}

#[test]
fn exit_handlers_run_beside_threads_that_main_leaves_behind() {
    let source = |end| thread_and_end("shared++;", "shared++;", end);
    check(&source("return 0"), |outcome| {
        outcome.ends_with(1).prints("bug: data race");
    });
    for end in ["pthread_exit(0)", "pthread_join(thread, 0)"] {
        check(&source(end), |outcome| {
            outcome.ends_with(0);
        });
    }
    // The thread may have come as far as it likes by then.
    for (value, status) in [(0, 1), (1, 1), (2, 0)] {
        let handler = format!("assert(flag != {value});");
        check(
            &thread_and_end("flag = 1;", &handler, "return 0"),
            |outcome| {
                outcome.ends_with(status);
            },
        );
    }
}

#[test]
fn exit_handlers_run_when_another_thread_ends_the_process() {
    for (handler, status) in [("assert(flag == 0);", 1), ("assert(flag == 1);", 0)] {
        let source = thread_and_end("flag = 1; exit(0);", handler, "pthread_join(thread, 0)");
        check(&source, |outcome| {
            outcome.ends_with(status);
        });
    }
}

#[test]
fn searches_over_states_see_accesses_to_the_stack_of_a_thread_that_has_ended() {
    let run = "volatile int local = 3; atomic_store(&address, &local); WAIT";
    let end = "volatile int *local; while (!(local = address)) { } int value = *local; flag = 1;
        pthread_join(thread, 0); return value - value";
    for (wait, status) in [("while (!flag) { }", 0), ("", 1)] {
        let source = thread_and_end(&run.replace("WAIT", wait), "", end).replace(
            "static int shared;",
            "static _Atomic(volatile int *) address;",
        );
        let sandbox = Sandbox::with("stack.c", &source);
        for algorithm in ["csdr", "bfs", "dfs"] {
            let arguments = [
                "verify",
                "stack.c",
                "--model",
                "sc",
                "--algorithm",
                algorithm,
            ];
            sandbox.run(&arguments).ends_with(status);
        }
    }
}
