//! Searches that are kept in a file.

use std::fs;
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use sha2::{Digest as _, Sha256};

use crate::common::{Sandbox, wait_until, workers_of};
use crate::kills::LONG;
use crate::scale::{COUNTERS, EXECUTIONS};

#[test]
fn an_interrupted_search_is_continued() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let start = [
        "verify",
        "counters.c",
        "--checkpoint",
        "search",
        "--format",
        "json",
    ];
    let go_on = ["resume", "search", "--jobs", "2", "--format", "json"];
    let mut times = 0;
    loop {
        let arguments = if times == 0 { &start[..] } else { &go_on };
        let mut command = sandbox.command(arguments);
        let mut child = command.env("SELVEDGE_SLICE", "20ms").spawn().unwrap();
        let pid = child.id();
        if times < 4 {
            wait_until("it searches", || {
                !workers_of(pid).is_empty() || child.try_wait().unwrap().is_some()
            });
            std::thread::sleep(Duration::from_millis(60 + 70 * times));
            let signal = [Signal::SIGINT, Signal::SIGTERM][times as usize % 2];
            let _ = kill(Pid::from_raw(pid as i32), signal);
        }
        times += 1;
        let outcome = sandbox.finish(child);
        if outcome.status == Some(0) {
            assert_eq!(outcome.json()["executions"], EXECUTIONS);
            break;
        }
        let json = outcome.ends_with(3).json();
        assert_eq!(json["resume"], "selvedge resume search");
        assert!(json["executions"].as_u64().unwrap() < EXECUTIONS);
    }
    assert!(!sandbox.path("search").exists(), "a search that is done");
}

#[test]
fn a_limit_is_no_end() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let limit = ["--max-executions", "1000"];
    let start = ["verify", "counters.c", "--checkpoint", "search"];
    sandbox
        .run(&[&start[..], &limit].concat())
        .ends_with(3)
        .prints("incomplete: stopped after 1000 executions (--max-executions)")
        .prints("\nnext: selvedge resume search\n");
    sandbox
        .run(&start)
        .ends_with(2)
        .says("error: search exists already\nhelp: selvedge resume search continues");
    sandbox
        .run(&["resume", "search"])
        .ends_with(0)
        .prints("(34,650 executions");
}

#[test]
fn a_checkpoint_that_does_not_fit_is_refused() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let limit = [
        "verify",
        "counters.c",
        "--checkpoint",
        "search",
        "--max-executions",
        "10",
    ];
    sandbox.run(&limit).ends_with(3);
    let good = fs::read(sandbox.path("search")).unwrap();
    let refused = |bytes: &[u8], message: &str| {
        fs::write(sandbox.path("search"), bytes).unwrap();
        sandbox
            .run(&["resume", "search"])
            .ends_with(2)
            .says(message);
    };
    let mut damaged = good.clone();
    damaged[good.len() / 2] ^= 1;
    refused(&damaged, "error: search is damaged\n");
    refused(&good[..good.len() - 1], "error: search is damaged\n");
    refused(&good[..30], "error: search is damaged\n");
    refused(b"int main;", "error: search is not a checkpoint\n");
    let mut other = good.clone();
    other[20] += 1;
    refused(
        &other,
        "error: search was written by another version of Selvedge\n",
    );
    // The version stands at the beginning of the body, after magic number, format and checksum.
    let mut older = good.clone();
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let at = older
        .windows(version.len())
        .position(|part| part == version);
    older[at.expect("the version")] += 1;
    let sum = Sha256::digest(&older[56..]);
    older[24..56].copy_from_slice(&sum);
    refused(
        &older,
        "error: search was written by another version of Selvedge (1.",
    );
    sandbox.write("counters.c", &COUNTERS.replace("i < 4", "i < 3"));
    refused(&good, "error: search is about another program");
    sandbox.write("counters.c", COUNTERS);
    fs::write(sandbox.path("search"), &good).unwrap();
    sandbox
        .run(&["resume", "search"])
        .ends_with(0)
        .prints("(34,650 executions");
}

/// A limit on time ends the command, and each of the commands that continue it.
#[test]
fn a_search_with_a_limit_on_time_is_continued() {
    let sandbox = Sandbox::with("long.c", LONG);
    let limit = ["--timeout", "0.7", "--jobs", "1", "--format", "json"];
    let start = ["verify", "long.c", "--checkpoint", "search"];
    let go_on = ["resume", "search"];
    let mut before = 0;
    for command in [&start[..], &go_on, &go_on] {
        let outcome = sandbox.run(&[command, &limit].concat());
        let json = outcome.ends_with(3).json();
        let executions = json["executions"].as_u64().expect("a number");
        assert!((before..369_600).contains(&executions), "{json}");
        assert_eq!(json["resume"], "selvedge resume search");
        assert_eq!(json["reason"], "stopped after 0.7 seconds (--timeout)");
        before = executions;
    }
    assert!(before > 0, "nothing was explored in two seconds");
    sandbox
        .run(&go_on)
        .ends_with(0)
        .prints("(369,600 executions");
}

#[test]
fn a_checkpoint_of_another_build_is_refused() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    // A byte more makes it another file, which does the same.
    let other = sandbox.path("selvedge");
    let mut bytes = fs::read(env!("CARGO_BIN_EXE_selvedge")).unwrap();
    bytes.push(0);
    fs::copy(env!("CARGO_BIN_EXE_selvedge"), &other).unwrap();
    fs::write(&other, bytes).unwrap();
    let status = Command::new(&other)
        .args(["verify", "counters.c", "--checkpoint", "search"])
        .args(["--max-executions", "10"])
        .current_dir(sandbox.path("."))
        .env("TMPDIR", sandbox.path("tmp"))
        .output();
    assert_eq!(status.unwrap().status.code(), Some(3));
    sandbox
        .run(&["resume", "search"])
        .ends_with(2)
        .says("error: search was written by another build of Selvedge\n");
}
