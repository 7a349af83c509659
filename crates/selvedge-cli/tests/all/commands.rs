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
    let outcome = sandbox.run(&["verify", "queue_schedules.c", "--explain"]);
    outcome.ends_with(0).prints("What the verdict assumes:");
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
    sandbox.run(&["verify", "stack_schedules.cpp"]).ends_with(0);

    sandbox.write("Cargo.toml", "[package]\nname = \"stack\"\n");
    let outcome = sandbox.run(&["init", "."]);
    outcome
        .ends_with(0)
        .prints("loom = \"0.7\"\n\nnext: cargo selvedge test\n");
}
