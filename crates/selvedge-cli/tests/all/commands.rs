//! The small commands around a check: completions, man pages, a first harness, `--explain`.

use std::fs;

use crate::common::Sandbox;

#[test]
fn completions_and_man_pages_come_from_the_definition() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = sandbox.run(&["completions", shell]);
        outcome.ends_with(0).prints("preemptions");
    }
    sandbox.run(&["man", "pages"]).ends_with(0);
    let page = fs::read_to_string(sandbox.path("pages/selvedge-verify.1")).expect("a page");
    assert!(page.contains("max\\-executions"), "{page}");
    assert!(!sandbox.path("pages/selvedge-worker.1").exists());
}

#[test]
fn a_first_harness_can_be_checked_at_once() {
    let sandbox = Sandbox::with("queue.h", "int push(int value);\n");
    let outcome = sandbox.run(&["init", "queue.h"]);
    outcome
        .ends_with(0)
        .prints("next: selvedge verify queue_schedules.c\n");
    let harness = fs::read_to_string(sandbox.path("queue_schedules.c")).expect("a harness");
    assert!(harness.contains(" *   int push(int value);\n"), "{harness}");
    // A harness that nobody has filled in must not look like a proof.
    sandbox
        .run(&["verify", "queue_schedules.c"])
        .ends_with(1)
        .prints("nothing is checked yet");
    let filled = harness.replace("!\"nothing is checked yet\"", "1");
    sandbox.write("queue_schedules.c", &filled);
    sandbox.run(&["verify", "queue_schedules.c"]).ends_with(0);
    sandbox
        .run(&["init", "queue.h"])
        .ends_with(2)
        .says("queue_schedules.c exists already");

    sandbox.write("stack.hpp", "struct Stack { void push(int value) {} };\n");
    let next = "next: selvedge verify stack_schedules.cpp\n";
    sandbox
        .run(&["init", "stack.hpp"])
        .ends_with(0)
        .prints(next);
    sandbox
        .run(&["verify", "stack_schedules.cpp"])
        .ends_with(1)
        .prints("nothing is checked yet");

    sandbox.write("Cargo.toml", "[package]\nname = \"stack\"\n");
    let outcome = sandbox.run(&["init", "."]);
    outcome
        .ends_with(0)
        .prints("loom = \"0.7\"\n\nnext: cargo selvedge test\n");
}

const RACE: &str = "\
#include <pthread.h>
static int x;
static void *f(void *unused) { x = 1; return unused; }
int main(void) {
  pthread_t other;
  pthread_create(&other, 0, f, 0);
  x = 2;
  pthread_join(other, 0);
}
";

#[test]
fn an_explained_verdict_says_what_was_explored_and_under_which_assumptions() {
    let sandbox = Sandbox::with("race.c", RACE);
    let plain = sandbox.run(&["verify", "race.c", "--explain", "--plain", "sc"]);
    plain
        .ends_with(0)
        .prints("Data races were not looked for: with --plain sc")
        .prints("memory model: sc: memory is sequentially consistent")
        .prints("executions that count as the same: mazurkiewicz")
        .prints("plain accesses: each one is a step; no data races");
    assert!(!plain.stdout.contains("two threads race"), "{plain:?}");

    sandbox.write("fine.c", &RACE.replace("static int", "static _Atomic int"));
    let fine = sandbox.run(&["verify", "fine.c", "--explain"]);
    fine.ends_with(0)
        .prints("each location through the same writes in the same order")
        .prints("two threads race");
    for assumption in [
        "condition variables: wake up when signalled",
        "weak compare-exchanges: fail where strong ones do",
        "freed memory: is not allocated again",
        "memory leaks: are not looked for",
        "threads: at most 1,000 (--max-threads)",
        "stack of a thread: at most 256.00 KiB (--stack-size)",
        "heap of an execution: at most 256.00 MiB (--heap-limit)",
        "memory of the search: at most half of the machine's (--memory-limit)",
        "endless loops: a thread that runs for 5 s without a visible operation (--watchdog)",
    ] {
        fine.prints(assumption);
    }
    let reads = ["verify", "fine.c", "--explain", "--model", "sc"];
    let reads = sandbox.run(&[&reads[..], &["--equivalence", "reads-from"]].concat());
    reads
        .ends_with(0)
        .prints("each read gets its value from the same write cannot be told apart")
        .prints("executions that count as the same: reads-from");
    assert!(!reads.stdout.contains("in the same order"), "{reads:?}");
}
