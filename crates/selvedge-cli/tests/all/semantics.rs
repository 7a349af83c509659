//! The rules of C about memory and about the end of the program.

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
    let options: [&[&str]; 5] = [
        &[],
        &["--model", "sc", "--algorithm", "csdr"],
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
                wrong
                    .run(&["replay", "trace", "--cc", compiler])
                    .ends_with(1);
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

/// Checks a program with all explorers.
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

const WEAK: &str = "#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int owner;
static int shared;
static void *claims(void *unused) {
    int expected = 0;
    int won = atomic_compare_exchange_weak(&owner, &expected, 1);
    assert(won);
    return unused;
}
static void *locks(void *unused) {
    int expected;
    do { expected = 0; } while (!atomic_compare_exchange_weak(&owner, &expected, 1));
    shared++;
    atomic_store(&owner, 0);
    return unused;
}
int main(void) {
    pthread_t one, two;
    pthread_create(&one, 0, RUN, 0);
    pthread_join(one, 0);
    if (RUN == claims) return 0;
    pthread_create(&one, 0, RUN, 0);
    pthread_create(&two, 0, RUN, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    assert(shared == 3);
    return 0;
}
";

#[test]
fn weak_exchanges_fail_for_no_reason_on_request() {
    let sandbox = Sandbox::with("weak.c", WEAK);
    let strong = Sandbox::with("weak.c", &WEAK.replace("_weak", "_strong"));
    let note = "note: weak compare-exchanges were taken to fail only where strong ones do";
    for compiler in compilers() {
        for options in EXPLORERS {
            let run = |sandbox: &Sandbox, function: &str, more: &[&str]| {
                let verify = ["verify", "weak.c", "--cc", compiler];
                let flags = ["--", &format!("-DRUN={function}")];
                sandbox.run(&[&verify, options, more, &flags].concat())
            };
            let spurious = "--spurious-failures";
            run(&sandbox, "claims", &[]).ends_with(0).prints(note);
            run(&sandbox, "claims", &[spurious])
                .ends_with(1)
                .prints("bug: assertion failed: won");
            run(&strong, "claims", &[spurious]).ends_with(0);
            let silent = run(&strong, "claims", &[]);
            assert!(!silent.ends_with(0).stdout.contains("note:"));
            // A loop that tries again makes no difference, and is recognised as one that waits.
            let without = run(&sandbox, "locks", &["--format", "json"]).json();
            let with = run(&sandbox, "locks", &["--format", "json", spurious]).json();
            assert_eq!(with["verdict"], "verified");
            assert_eq!(with["executions"], without["executions"]);
            assert!(without["notes"][0].as_str().unwrap().contains(spurious));
            assert!(with["notes"].is_null());
        }
    }
}

/// A Treiber stack of which one thread pops slowly: `top` may be the same block again by then, with
/// another one below it.
const ABA: &str = "#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
struct node { struct node *_Atomic next; };
static struct node *_Atomic top;
static atomic_int looked;
static void push(void) {
    struct node *node = malloc(sizeof *node), *old = atomic_load(&top);
    do atomic_store(&node->next, old); while (!atomic_compare_exchange_strong(&top, &old, node));
}
static struct node *pop(void) {
    struct node *old = atomic_load(&top);
    while (old && !atomic_compare_exchange_strong(&top, &old, atomic_load(&old->next))) { }
    return old;
}
static void *slow(void *unused) {
    struct node *old = atomic_load(&top), *next = atomic_load(&old->next);
    looked = 1;
    atomic_compare_exchange_strong(&top, &old, next);
    return unused;
}
static void *quick(void *unused) {
    if (!looked) return unused;
    struct node *first = pop(), *second = pop();
    FREE(second);
    FREE(first);
    push();
    return unused;
}
int main(void) {
    pthread_t one, two;
    push();
    push();
    pthread_create(&one, 0, slow, 0);
    pthread_create(&two, 0, quick, 0);
    pthread_join(one, 0);
    pthread_join(two, 0);
    while (pop()) { }
    return 0;
}
";

#[test]
fn blocks_are_allocated_again_on_request() {
    let sandbox = Sandbox::with("aba.c", ABA);
    let note = "note: the program compares pointers to memory that another thread frees";
    for compiler in compilers() {
        for options in EXPLORERS {
            let run = |free: &str, more: &[&str]| {
                let verify = ["verify", "aba.c", "--cc", compiler];
                let flags = ["--", &format!("-DFREE={free}")];
                sandbox.run(&[&verify, options, more, &flags].concat())
            };
            if options.contains(&"csdr") {
                run("free", &["--reuse-memory"])
                    .ends_with(2)
                    .says("--reuse-memory cannot be combined with searches over states");
                continue;
            }
            run("free", &[]).ends_with(0).prints(note);
            run("free", &["--reuse-memory", "--trace-out", "trace"])
                .ends_with(1)
                .prints("bug: use after free");
            sandbox
                .run(&["replay", "trace", "--cc", compiler])
                .ends_with(1);
            // Memory that is never freed is not reused.
            run("(void)", &["--reuse-memory"]).ends_with(0);
            let silent = run("(void)", &[]);
            assert!(!silent.ends_with(0).stdout.contains("note:"));
        }
    }
}

#[test]
fn limits_are_no_bugs_and_stacks_are_as_large_as_asked_for() {
    let source = "#include <pthread.h>
#include <stdlib.h>
static int deep(int n) {
    volatile char room[1000];
    room[0] = n;
    return n ? deep(n - 1) + room[0] : 0;
}
static void *run(void *unused) { deep(1000); return unused; }
int main(void) {
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SIZE);
    pthread_create(&thread, &attributes, run, 0);
    pthread_join(thread, 0);
    free(malloc(BYTES));
    return 0;
}
";
    let sandbox = Sandbox::with("limits.c", source);
    let run = |size: &str, bytes: &str, options: &[&str]| {
        let flags = ["--", &format!("-DSIZE={size}"), &format!("-DBYTES={bytes}")];
        sandbox.run(&[&["verify", "limits.c"], options, &flags].concat())
    };
    run("65536", "10", &[])
        .ends_with(3)
        .prints("the stack of 256 KiB of a thread is used up (--stack-size)");
    run("65536", "10", &["--stack-size", "4M"]).ends_with(0);
    run("4194304", "10", &[]).ends_with(0);
    run("1073741824", "10", &[])
        .ends_with(3)
        .prints("a stack of 1073741824 bytes for a thread");
    run("4194304", "2000000", &["--heap-limit", "1M"])
        .ends_with(3)
        .prints("an allocation of 2000000 bytes does not fit");
}

#[test]
fn what_gcc_compiles_is_not_a_variant_for_a_sanitizer() {
    let source = "#ifdef __SANITIZE_THREAD__
#error this is not the code that ships
#endif
int main(void) { return 0; }
";
    for name in ["plain.c", "plain.cc"] {
        let compiler = if name == "plain.c" { "gcc" } else { "g++" };
        let sandbox = Sandbox::with(name, source);
        for options in [&[][..], &["--unroll", "2"]] {
            let verify = ["verify", name, "--cc", compiler];
            sandbox.run(&[&verify, options].concat()).ends_with(0);
        }
    }
}

#[test]
fn weak_exchanges_of_cxx_fail_for_no_reason_too() {
    let source = "#include <atomic>
#include <cassert>
struct alignas(8) Pair { int one, two; };
static std::atomic<int> number;
static std::atomic<Pair> pair;
int main() {
    int expected = 0;
    while (!number.compare_exchange_weak(expected, 1)) expected = 0;
    assert(number == 1);
    Pair zero = {0, 0};
    bool done = pair.compare_exchange_weak(zero, Pair{1, 2});
    assert(done);
    return 0;
}
";
    let sandbox = Sandbox::with("weak.cc", source);
    for compiler in compilers() {
        let compiler = if compiler == "gcc" { "g++" } else { "clang++" };
        let verify = ["verify", "weak.cc", "--cc", compiler];
        sandbox.run(&verify).ends_with(0);
        sandbox
            .run(&[&verify[..], &["--spurious-failures"]].concat())
            .ends_with(1)
            .prints("bug: assertion failed: done");
    }
}
