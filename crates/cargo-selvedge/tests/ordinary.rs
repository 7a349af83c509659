//! Programs that are written against `std`, checked as they are.
//!
//! They need the `selvedge` command beside `cargo-selvedge`, and a crate from the registry:
//! `cargo build -p selvedge-cli && cargo test -p cargo-selvedge --test ordinary -- --ignored`

use std::path::Path;
use std::process::{Command, Output};

/// Runs `cargo selvedge check` with these arguments.
fn run(arguments: &[&str]) -> Output {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ordinary");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ordinary");
    Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"))
        .args(["selvedge", "check"])
        .args(arguments)
        .args(["--", "--timeout", "120"])
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo-selvedge runs")
}

/// The output of `cargo selvedge check`: the verdict with the bug's message, and its exit status.
fn check(name: &str) -> (String, Option<i32>) {
    let output = run(&["--bin", name]);
    let text = String::from_utf8_lossy(&output.stdout);
    let verdict = text.lines().find(|line| {
        ["verified", "bug", "incomplete"]
            .iter()
            .any(|v| line.starts_with(v))
    });
    let verdict = verdict.map(str::to_owned).unwrap_or_else(|| {
        let errors = String::from_utf8_lossy(&output.stderr);
        panic!("{name} has no verdict: {text}{errors}")
    });
    (verdict, output.status.code())
}

/// Checks each program and compares what is said with how that has to begin.
fn expect(programs: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (name, expected) in programs {
        let (verdict, status) = check(name);
        println!("{name}: {verdict}");
        let expected_status = i32::from(expected.starts_with("bug"));
        if !verdict.starts_with(expected) || status != Some(expected_status) {
            wrong.push(format!("{name}: {verdict} (status {status:?})"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
#[ignore = "needs the selvedge command, the registry and Rust 1.95; .ci/run calls it"]
fn correct_programs_are_verified() {
    expect(&[
        ("channel", "verified: no execution fails (251 executions"),
        ("scope", "verified: no execution fails (15,535 executions"),
        ("mutex", "verified: no execution fails (4 executions"),
        ("rwlock", "verified: no execution fails (613 executions"),
        ("condvar", "verified: no execution fails (1,012 executions"),
        ("once", "verified: no execution fails (42 executions"),
        ("park", "verified: no execution fails (14 executions"),
        ("poison", "verified: no execution fails (1 execution"),
        ("crossbeam", "verified: no execution fails (193 executions"),
    ]);
}

#[test]
#[ignore = "needs the selvedge command, the registry and Rust 1.95; .ci/run calls it"]
fn bugs_are_found() {
    expect(&[
        (
            "lost_update",
            "bug: assertion failed: panicked at src/bin/lost_update.rs:17: assertion",
        ),
        (
            "channel_order",
            "bug: assertion failed: panicked at src/bin/channel_order.rs:12: assertion",
        ),
        ("deadlock", "bug: endless spinning"),
        ("lost_wakeup", "bug: deadlock: no thread can go on"),
        (
            "message",
            "bug: assertion failed: panicked at src/bin/message.rs:15: assertion",
        ),
        (
            "arc_count",
            "bug: assertion failed: panicked at src/bin/arc_count.rs:10: assertion",
        ),
        (
            "race",
            "bug: data race: read of 8 bytes and write of 8 bytes of `race::LOCK`",
        ),
    ]);
}

#[test]
#[ignore = "needs the selvedge command, the registry and Rust 1.95; .ci/run calls it"]
fn tests_are_checked_one_by_one() {
    let lines = |arguments: &[&str]| {
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let verdicts = ["verified ", "bug ", "incomplete "];
        let is_verdict = |line: &&str| verdicts.iter().any(|verdict| line.starts_with(verdict));
        let lines: Vec<String> = text.lines().filter(is_verdict).map(str::to_owned).collect();
        assert!(
            !lines.is_empty(),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        (lines, output.status.code())
    };
    let (found, status) = lines(&["--test", "flags"]);
    let expected = [
        "bug         an_expected_panic_must_come: assertion failed: panicked at selvedge/shim.rs:45: test did not panic as expected",
        "verified    panics_may_be_expected: 1 execution, no thread was started",
        "verified    release_is_enough: 2 executions",
        "verified    tests_may_return_results: 1 execution",
        "bug         weak::relaxed_is_not: assertion failed: panicked at tests/flags.rs:38: assertion `left == right` failed",
    ];
    assert_eq!(
        (found.as_slice(), status),
        (&expected.map(str::to_owned)[..], Some(1))
    );
    let (found, status) = lines(&["--test", "flags", "may_return", "may_be"]);
    assert_eq!((found.len(), status), (2, Some(0)), "{found:?}");
}

#[test]
#[ignore = "needs the selvedge command, the registry and Rust 1.95; .ci/run calls it"]
fn a_program_is_given_its_arguments() {
    expect(&[("arguments", "verified: no execution fails (1 execution")]);
}
