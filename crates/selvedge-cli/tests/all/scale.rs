//! Searches that are divided: over several processes, over several runs of the command.

use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::common::{Sandbox, wait_until, workers_of};
use crate::examples;
use crate::kills::{LONG, Moments};

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

/// Every program of the manifest, with its bugs one by one and all together.
fn all_examples() -> Vec<Vec<String>> {
    let mut all = Vec::new();
    for program in examples::manifest() {
        let words = |key: &str| {
            let list = program[key].as_array().expect("a list").clone();
            list.into_iter()
                .map(|word| word.as_str().expect("text").to_owned())
        };
        let file = program["file"].as_str().expect("a file name");
        let file = examples::directory().join(file).display().to_string();
        let flags = ["--".to_owned()].into_iter().chain(words("flags"));
        let arguments: Vec<_> = words("options").chain([file]).chain(flags).collect();
        if program["verdict"] != "verified" {
            all.push([vec!["--keep-going".to_owned()], arguments.clone()].concat());
        }
        all.push(arguments);
    }
    all
}

/// By default one way to divide one example in eight, both as the seed says; with `SELVEDGE_GRID=all`, all nine ways
/// for all examples.
#[test]
#[ignore = "takes a minute"]
fn neither_jobs_nor_slices_change_what_is_found_in_any_example() {
    let every = std::env::var("SELVEDGE_GRID").is_ok_and(|grid| grid == "all");
    let mut moments = Moments::new();
    let mut one_in = |n: u64| moments.next(0..n).is_zero();
    let mut searches = Vec::new();
    for arguments in all_examples() {
        if !every && !one_in(8) {
            continue;
        }
        let ways = ["1", "2", "5"].map(|jobs| ["1", "10", "10ms"].map(|slice| (jobs, slice)));
        let mut ways = ways.concat();
        if !every {
            ways.retain(|_| one_in(3));
        }
        searches.push((arguments, ways));
    }
    let sandbox = Sandbox::new();
    let compared: usize = searches.iter().map(|(_, ways)| ways.len()).sum();
    println!("{} searches, divided in {compared} ways", searches.len());
    assert!(compared > 0, "nothing is compared");
    let queue = Mutex::new(searches.into_iter());
    let next = || queue.lock().expect("no thread panics here").next();
    let work = || {
        while let Some((arguments, ways)) = next() {
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let whole = divided(&sandbox, &arguments, "1", "1000000ms");
            for (jobs, slice) in ways {
                let found = divided(&sandbox, &arguments, jobs, slice);
                assert_eq!(found, whole, "{arguments:?} {jobs} {slice}");
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
}

/// The essence of what `selvedge verify` finds with so many workers and slices of that length.
fn divided(sandbox: &Sandbox, arguments: &[&str], jobs: &str, slice: &str) -> Value {
    let fixed = ["verify", "--format", "json", "--no-advice", "--jobs", jobs];
    let mut command = sandbox.command(&[&fixed, arguments].concat());
    // Two of them run at a time, so that the directory may hold files of the other one.
    command
        .env("SELVEDGE_SLICE", slice)
        .env("TMPDIR", sandbox.path("."));
    let output = command.output().expect("the command runs");
    let told = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout);
    essence(&json.unwrap_or_else(|error| panic!("{error}: {arguments:?} {told}")))
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

#[test]
fn only_a_long_search_has_several_workers() {
    let sandbox = Sandbox::with("long.c", LONG);
    sandbox.write("short.c", &COUNTERS.replace("i < 4", "i < 1"));
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let workers = |program: &str| {
        let result = sandbox.run(&["verify", program, "--format", "json"]);
        let times = result.ends_with(0).json()["processor_seconds"].clone();
        // One worker is not listed.
        times.as_array().map_or(1, |times| times.len().max(1))
    };
    assert_eq!(workers("short.c"), 1);
    match processors {
        1..=4 => assert_eq!(workers("long.c"), processors),
        _ => assert!((2..=processors).contains(&workers("long.c"))),
    }
}

/// The bug that the search meets first takes one switch more than the other one.
#[test]
fn of_several_bugs_the_simplest_is_reported() {
    let sandbox = Sandbox::with(
        "two.c",
        "
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x, y, z;
static void *writer(void *unused) {
    int early = z;
    assert(early == 0);
    x = 1;
    y = 1;
    return unused;
}
static void *reader(void *unused) {
    int first = x, second = y;
    z = 1;
    assert(!(first == 0 && second == 1));
    return unused;
}
int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], 0, writer, 0);
    pthread_create(&threads[1], 0, reader, 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], 0);
    return 0;
}
",
    );
    let found = |options: &[&str], jobs: &str, slice: &str| {
        let arguments = [
            "verify",
            "two.c",
            "--format",
            "json",
            "--no-advice",
            "--jobs",
            jobs,
        ];
        let mut command = sandbox.command(&[&arguments[..], options].concat());
        command.env("SELVEDGE_SLICE", slice);
        let json = sandbox.finish(command.spawn().unwrap()).ends_with(1).json();
        let bug = |bug: &Value| {
            let switches = bug["context_switches"].as_u64().expect("a number");
            (bug["message"].as_str().expect("text").to_owned(), switches)
        };
        let all = json["bugs"]
            .as_array()
            .map(|bugs| bugs.iter().map(bug).collect());
        (bug(&json["bug"]), all.unwrap_or_default())
    };
    for (jobs, slice) in [("1", ""), ("1", "1"), ("2", "1"), ("3", "1")] {
        let (first, none): (_, Vec<_>) = found(&[], jobs, slice);
        assert!(first.0.contains("first == 0"), "{first:?}");
        assert!(none.is_empty());
        let (simplest, all) = found(&["--keep-going"], jobs, slice);
        assert!(simplest.0.contains("early == 0"), "{simplest:?}");
        assert!(simplest.1 < first.1, "{simplest:?} {first:?}");
        assert_eq!(all, [simplest, first]);
    }
}

/// The messages while a search runs, and when it is stopped.
#[test]
fn a_long_search_tells_how_much_is_left() {
    let sandbox = Sandbox::with("long.c", LONG);
    let stopped = [
        "verify",
        "long.c",
        "--jobs",
        "1",
        "--timeout",
        "4",
        "--format",
        "jsonl",
    ];
    let mut command = sandbox.command(&stopped);
    // Some slices are enough for an estimate.
    let child = command.env("SELVEDGE_SLICE", "50ms").spawn().unwrap();
    let outcome = sandbox.finish(child);
    let events = outcome.stdout.lines();
    let events: Vec<Value> = events
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let is_told = |event: &Value| {
        let progress = event["progress"].as_f64().expect("the part that is done");
        assert!((0.0..=1.0).contains(&progress), "{event}");
        let estimate = &event["estimate"];
        let number = |name: &str| estimate[name].as_f64().expect("a number");
        let (low, high) = (number("low"), number("high"));
        assert!(
            low <= number("executions") && number("executions") <= high,
            "{event}"
        );
        assert!(number("seconds_left") >= 0.0, "{event}");
    };
    let progress = events.iter().filter(|event| event["event"] == "progress");
    let told: Vec<&Value> = progress
        .filter(|event| !event["estimate"].is_null())
        .collect();
    told.iter().for_each(|event| is_told(event));
    let result = events.last().expect("a result");
    // A quick machine may be done by then.
    if result["verdict"] == "incomplete" {
        assert!(!told.is_empty(), "{events:?}");
        is_told(result);
    }
}
