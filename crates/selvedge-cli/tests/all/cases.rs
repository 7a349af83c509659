//! Test cases of unit-test frameworks, each checked as a program of its own.

use std::path::{Path, PathBuf};

use crate::common::Sandbox;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

/// An executable `tests` of these sources, built as the documentation says.
fn build(sources: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let include = "-I/usr/src/googletest/googletest";
    let arguments = [&["c++", include, "-pthread", "-o", "tests"], sources].concat();
    sandbox.run(&arguments).ends_with(0);
    sandbox
}

#[test]
#[ignore = "needs libgtest-dev"]
fn cases_of_googletest() {
    let library = "/usr/src/googletest/googletest/src";
    let (all, main) = (
        format!("{library}/gtest-all.cc"),
        format!("{library}/gtest_main.cc"),
    );
    let own = source("gtest.cc");
    let sandbox = build(&[&own.to_string_lossy(), &all, &main]);
    let alone = sandbox.run(&["verify", "./tests", "--gtest_filter=Counter.Loses"]);
    alone
        .ends_with(1)
        .prints("bug: assertion failed: the program ended with status 1");
    let outcome = sandbox.run(&["verify", "./tests", "--gtest_filter=*"]);
    assert_eq!(
        outcome.ends_with(1).stdout,
        "verified    Counter.Adds: 2 executions
bug         Counter.Loses: the program ended with status 1
            selvedge verify ./tests --gtest_filter=Counter.Loses
verified    Other.Skips: 1 execution, no thread was started
verified    Other.Starts: 1 execution, no thread was started
4 test cases: 3 verified, 1 with a bug, 0 incomplete
"
    );
    outcome.says("note: disabled test cases are left out: 1");
    let outcome = sandbox.run(&["verify", "./tests", "--gtest_filter=Other.DISABLED_*"]);
    outcome.ends_with(2).says("nothing matches");
    let outcome = sandbox.run(&["verify", "./tests"]);
    outcome
        .ends_with(1)
        .says("a status other than zero is a bug; --gtest_filter='*' checks each case")
        .prints("bug: assertion failed: the program ended with status 1");
    let outcome = sandbox.run(&["verify", "./tests", "--gtest_filter=Nothing.*"]);
    outcome.ends_with(2).says("nothing matches Nothing.*");
}

/// The two frameworks whose cases have free names.
fn named_cases(flags: &[&str]) {
    let own = source("named.cc");
    let sandbox = build(&[flags, &[&own.to_string_lossy()]].concat());
    let outcome = sandbox.run(&["verify", "./tests", "--test-case=*"]);
    assert_eq!(
        outcome.ends_with(1).stdout,
        "verified    adds, twice: 2 executions
bug         loses: the program ended with status 1
            selvedge verify ./tests --test-case=loses
2 test cases: 1 verified, 1 with a bug, 0 incomplete
"
    );
}

#[test]
#[ignore = "needs catch2"]
fn cases_of_catch2() {
    named_cases(&[]);
}

#[test]
#[ignore = "needs doctest-dev"]
fn cases_of_doctest() {
    named_cases(&["-DDOCTEST"]);
}

#[test]
fn cases_need_an_executable_that_lists_them() {
    let sandbox = Sandbox::with("program.c", "int main(void) { return 0; }\n");
    let outcome = sandbox.run(&["verify", "program.c", "--gtest_filter=*"]);
    outcome
        .ends_with(2)
        .says("test cases are those of an executable")
        .says("CXX='selvedge c++'");
    sandbox
        .run(&["cc", "-o", "program", "program.c"])
        .ends_with(0);
    let outcome = sandbox.run(&["verify", "./program", "--test-case=*"]);
    outcome.ends_with(2).says("no known framework");
    let outcome = sandbox.run(&["verify", "./program", "--gtest_filter=*", "--", "x"]);
    outcome.ends_with(2).says("and no others");
}

#[test]
fn a_status_other_than_zero_is_a_bug_on_request() {
    let program = "#include <stdlib.h>\nint main(void) { exit(3); }\n";
    let sandbox = Sandbox::with("program.c", program);
    sandbox.run(&["verify", "program.c"]).ends_with(0);
    let arguments = [
        "verify",
        "program.c",
        "--check-status",
        "--trace-out",
        "trace.json",
    ];
    let outcome = sandbox.run(&arguments);
    outcome
        .ends_with(1)
        .prints("bug: assertion failed: the program ended with status 3\n --> program.c:2:");
    sandbox
        .run(&["replay", "trace.json"])
        .prints("ended with status 3");
}
