//! Programs that are written against `std`, checked as they are.
//!
//! They need the `selvedge` command beside `cargo-selvedge`, and a crate from the registry:
//! `cargo build -p selvedge-cli && cargo test -p cargo-selvedge --test ordinary -- --ignored`

use std::path::Path;
use std::process::Command;

/// What `cargo selvedge check` says: the verdict with the bug's message, and its exit status.
fn check(name: &str) -> (String, Option<i32>) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ordinary");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ordinary");
    let output = Command::new(env!("CARGO_BIN_EXE_cargo-selvedge"))
        .args(["selvedge", "check", "--bin", name, "--", "--timeout", "120"])
        .current_dir(directory)
        .env("CARGO_TARGET_DIR", target)
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo-selvedge runs");
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
