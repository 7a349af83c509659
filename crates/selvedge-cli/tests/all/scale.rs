//! Searches that are divided: over several processes, over several runs of the command.

use std::fs;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{Sandbox, wait_until, workers_of};
use crate::examples;

/// 34,650 executions.
pub(crate) const COUNTERS: &str = "
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *count(void *unused) { for (int i = 0; i < 4; i++) x++; return unused; }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return 0;
}
";
pub(crate) const EXECUTIONS: u64 = 34_650;

/// Threads that create threads, in an order that depends on the schedule.
pub(crate) const NESTED: &str = "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
static atomic_int *_Atomic shared;
static atomic_int sum;
static void *inner(void *mine) {
    atomic_int *old = atomic_exchange(&shared, (atomic_int *)mine);
    if (old) atomic_fetch_add(&sum, *old);
    return 0;
}
static void *outer(void *number) {
    atomic_int *mine = malloc(sizeof *mine);
    atomic_init(mine, *(int *)number);
    pthread_t thread;
    pthread_create(&thread, 0, inner, mine);
    pthread_join(thread, 0);
    return 0;
}
int main(void) {
    static int numbers[] = {1, 2, 4};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, outer, &numbers[i]);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    assert(sum != 3);
}
";

/// The first schedule that reaches the null pointer ends the process.
pub(crate) const CRASH: &str = "
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *count(void *unused) { x++; x++; return unused; }
int main(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], 0, count, 0);
    if (x == 3) __asm__ volatile(\"ud2\");
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// The parts of a report that must not depend on how a search is divided.
pub(crate) fn essence(json: &Value) -> Value {
    let keys = [
        "verdict",
        "executions",
        "blocked",
        "over_bound",
        "bound_blocked",
        "bugs",
    ];
    let mut essence: Vec<Value> = keys.iter().map(|key| json[key].clone()).collect();
    essence.push(json["bug"]["message"].clone());
    essence.push(json["bug"]["schedule"].clone());
    Value::Array(essence)
}

#[test]
fn neither_jobs_nor_slices_change_what_is_found() {
    let sandbox = Sandbox::with("nested.c", NESTED);
    let of = |name: &str| examples::directory().join(name).display().to_string();
    let (peterson, broken) = (of("peterson.c"), of("peterson_broken.c"));
    let (stack, queue) = (of("treiber_aba.c"), of("ms_queue_buggy.c"));
    for arguments in [
        &["nested.c"][..],
        &["nested.c", "--keep-going"],
        &[
            "nested.c",
            "--preemptions",
            "1",
            "--keep-going",
            "--model",
            "sc",
        ],
        &[&peterson],
        &[&broken, "--keep-going"],
        &[&stack],
        &[&queue, "--keep-going", "--model", "sc"],
    ] {
        assert_indivisible(&sandbox, arguments);
    }
}

/// Neither the number of workers nor the length of slices changes what `selvedge verify` finds.
fn assert_indivisible(sandbox: &Sandbox, arguments: &[&str]) {
    let run = |jobs: &str, slice: &str| {
        let fixed = ["verify", "--format", "json", "--no-advice", "--jobs", jobs];
        let mut command = sandbox.command(&[&fixed, arguments].concat());
        command.env("SELVEDGE_SLICE", slice);
        essence(&sandbox.finish(command.spawn().unwrap()).json())
    };
    let whole = run("1", "");
    for (jobs, slice) in [("2", "1"), ("5", "10"), ("2", "10ms")] {
        assert_eq!(run(jobs, slice), whole, "{arguments:?} {jobs} {slice}");
    }
}

#[test]
#[ignore = "takes two minutes"]
fn neither_jobs_nor_slices_change_what_is_found_in_any_example() {
    let sandbox = Sandbox::new();
    for program in examples::manifest() {
        if program["executions"].as_u64() > Some(5_000) {
            continue;
        }
        let words = |key: &str| {
            let list = program[key].as_array().expect("a list").clone();
            list.into_iter()
                .map(|word| word.as_str().expect("text").to_owned())
        };
        let file = program["file"].as_str().expect("a file name");
        let file = examples::directory().join(file).display().to_string();
        let flags = ["--".to_owned()].into_iter().chain(words("flags"));
        let arguments: Vec<_> = words("options").chain([file]).chain(flags).collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        assert_indivisible(&sandbox, &arguments);
        if program["verdict"] != "verified" {
            assert_indivisible(&sandbox, &[&["--keep-going"], &arguments[..]].concat());
        }
    }
}

#[test]
fn a_worker_that_dies_loses_nothing() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    let mut command = sandbox.command(&["verify", "counters.c", "--jobs", "2"]);
    let mut child = command.env("SELVEDGE_SLICE", "20ms").spawn().unwrap();
    let pid = child.id();
    for n in 0..3 {
        wait_until("there are workers", || {
            workers_of(pid).len() > 1 || child.try_wait().unwrap().is_some()
        });
        std::thread::sleep(Duration::from_millis(30));
        if let Some(&worker) = workers_of(pid).get(n % 2) {
            let _ = kill(Pid::from_raw(worker as i32), Signal::SIGKILL);
        }
    }
    sandbox
        .finish(child)
        .ends_with(0)
        .prints("(34,650 executions");
}

#[test]
fn a_program_that_ends_its_process_is_shown_with_its_schedule() {
    let sandbox = Sandbox::with("crash.c", CRASH);
    let run = |jobs: &str, slice: &str| {
        let arguments = [
            "verify",
            "crash.c",
            "--format",
            "json",
            "--no-advice",
            "--jobs",
            jobs,
        ];
        let mut command = sandbox.command(&arguments);
        command.env("SELVEDGE_SLICE", slice);
        let outcome = sandbox.finish(command.spawn().unwrap());
        essence(&outcome.ends_with(1).json())
    };
    assert_eq!(run("2", "1"), run("1", ""));
}

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
    sandbox.write("counters.c", &COUNTERS.replace("i < 4", "i < 3"));
    refused(&good, "error: search is about another program");
    sandbox.write("counters.c", COUNTERS);
    fs::write(sandbox.path("search"), &good).unwrap();
    sandbox
        .run(&["resume", "search"])
        .ends_with(0)
        .prints("(34,650 executions");
}

/// Every bound is divided, and the last one tells the counts.
#[test]
fn an_iterative_search_is_divided_too() {
    let sandbox = Sandbox::with("counters.c", COUNTERS);
    sandbox.write("nested.c", NESTED);
    for (program, status) in [("counters.c", 0), ("nested.c", 1)] {
        let result = |slice: &str, jobs: &str| {
            let options = ["--iterative", "--jobs", jobs, "--format", "json"];
            let mut command = sandbox.command(&[&["verify", program], &options[..]].concat());
            let child = command.env("SELVEDGE_SLICE", slice).spawn();
            let outcome = sandbox.finish(child.expect("the command starts"));
            let result = outcome.ends_with(status).json();
            let told = ["executions", "over_bound", "blocked", "bound", "bug"];
            told.map(|name| result[name].clone())
        };
        let whole = result("", "1");
        assert_eq!(result("200", "3"), whole, "{program}");
        assert_eq!(whole[3], Value::Null, "{program} has {whole:?}");
        if status == 0 {
            assert_eq!(whole[0], EXECUTIONS);
        }
    }
}
