//! Limits, interruptions, and options that no explorer honours yet.

use std::fs::{self, File};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Sandbox, wait_until, workers_of};

/// Far more executions than anybody can wait for.
const LONG: &str = "
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *count(void *unused) {
    for (int i = 0; i < 12; i++) x++;
    return unused;
}
int main(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], 0);
    return 0;
}
";

/// Six executions.
const SHORT: &str = "
#include <pthread.h>
#include <stdatomic.h>
static atomic_int x;
static void *count(void *unused) { x++; return unused; }
int main(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, count, 0);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    return x != 3;
}
";

#[test]
fn a_timeout_ends_the_search_with_counts() {
    let sandbox = Sandbox::with("long.c", LONG);
    let start = Instant::now();
    let outcome = sandbox.run(&["verify", "long.c", "--timeout", "0.5"]);
    outcome
        .ends_with(3)
        .prints("incomplete: stopped after 0.5 seconds (--timeout); no bug so far");
    assert!(start.elapsed() < Duration::from_secs(30));
    let outcome = sandbox.run(&["verify", "long.c", "--timeout", "0.5", "--format", "json"]);
    let json = outcome.ends_with(3).json();
    assert_eq!(json["verdict"], "incomplete");
    assert_eq!(json["reason"], "stopped after 0.5 seconds (--timeout)");
    assert!(json["executions"].as_u64().unwrap() > 0);
}

#[test]
fn an_execution_without_an_end_is_stopped_by_the_timeout_too() {
    let endless =
        "#include <stdatomic.h>\nstatic atomic_int x;\nint main(void) { for (;;) x++; }\n";
    for (source, timeout, says) in [
        (
            "static int x;\nint main(void) { for (;;) x ^= 1; }\n",
            "0.5",
            "",
        ),
        (
            endless,
            "4",
            "warning: the loop at hang.c:3 went round [..]--unroll N cuts loops",
        ),
    ] {
        let sandbox = Sandbox::with("hang.c", source);
        let arguments = [
            "verify",
            "hang.c",
            "--timeout",
            timeout,
            "--watchdog",
            "600",
        ];
        let outcome = sandbox.run(&arguments);
        let stopped = format!("incomplete: stopped after {timeout} seconds (--timeout)");
        outcome.ends_with(3).prints(&stopped);
        for part in says.split("[..]") {
            outcome.says(part);
        }
    }
}

#[test]
fn a_limit_on_executions_counts_exactly() {
    let sandbox = Sandbox::with("long.c", LONG);
    let arguments = [
        "verify",
        "long.c",
        "--max-executions",
        "100",
        "--format",
        "json",
    ];
    let json = sandbox.run(&arguments).ends_with(3).json();
    assert_eq!(json["executions"], 100);
    assert_eq!(
        json["reason"],
        "stopped after 100 executions (--max-executions)"
    );
}

#[test]
fn a_limit_that_is_just_enough_leaves_the_search_complete() {
    let sandbox = Sandbox::with("short.c", SHORT);
    let outcome = sandbox.run(&["verify", "short.c", "--max-executions", "6"]);
    outcome
        .ends_with(0)
        .prints("verified: no execution fails (6 executions under rc11)\n");
    let outcome = sandbox.run(&["verify", "short.c", "--max-executions", "5"]);
    outcome.ends_with(3).prints("(5 executions under rc11)\n");
}

#[test]
fn an_interruption_tells_what_was_covered() {
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let sandbox = Sandbox::with("long.c", LONG);
        let child = sandbox.command(&["verify", "long.c"]).spawn().unwrap();
        let pid = child.id();
        wait_until("the search runs", || !workers_of(pid).is_empty());
        std::thread::sleep(Duration::from_millis(300));
        kill(Pid::from_raw(pid as i32), signal).unwrap();
        let outcome = sandbox.finish(child);
        outcome
            .ends_with(3)
            .prints("incomplete: interrupted; no bug so far");
    }
}

#[test]
fn a_worker_does_not_outlive_the_command() {
    let sandbox = Sandbox::with("long.c", LONG);
    let mut child = sandbox.command(&["verify", "long.c"]).spawn().unwrap();
    let pid = child.id();
    wait_until("the search runs", || !workers_of(pid).is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("the worker has died", || workers_of(pid).is_empty());
    // The next process removes the directory that was left behind, once it is old enough.
    let left: Vec<_> = fs::read_dir(sandbox.path("tmp")).unwrap().collect();
    assert_eq!(left.len(), 1);
    for entry in left {
        let directory = File::open(entry.unwrap().path()).unwrap();
        directory.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }
    sandbox.run(&["verify", "long.c", "--max-executions", "1"]);
}

#[test]
fn a_search_that_takes_too_much_memory_is_stopped() {
    let sandbox = Sandbox::with("long.c", LONG);
    let outcome = sandbox.run(&["verify", "long.c", "--memory-limit", "2M"]);
    outcome.ends_with(3).prints(
        "incomplete: stopped because the program took more than 2 MiB of memory (--memory-limit)",
    );
}

#[test]
fn a_worker_that_is_killed_from_outside_is_replaced() {
    let sandbox = Sandbox::with("long.c", LONG);
    let child = sandbox
        .command(&["verify", "long.c", "--timeout", "2"])
        .spawn()
        .unwrap();
    let pid = child.id();
    wait_until("the search runs", || !workers_of(pid).is_empty());
    std::thread::sleep(Duration::from_millis(300));
    kill(Pid::from_raw(workers_of(pid)[0] as i32), Signal::SIGKILL).unwrap();
    let outcome = sandbox.finish(child);
    outcome
        .ends_with(3)
        .prints("incomplete: stopped after 2 seconds (--timeout)");
}

/// Each of several processes is missed at once, and takes the others along.
#[test]
fn a_process_of_several_that_is_killed_ends_the_search() {
    let source = LONG.replace("i < 12", "x < 2000000");
    let sandbox = Sandbox::with("endless.c", &source);
    for place in [0, 2] {
        let child = sandbox
            .command(&["verify", "endless.c", "--algorithm", "bfs", "--jobs", "3"])
            .spawn()
            .unwrap();
        let pid = child.id();
        wait_until("all of them run", || workers_of(pid).len() == 3);
        std::thread::sleep(Duration::from_millis(300));
        let mut workers = workers_of(pid);
        workers.sort_unstable();
        kill(Pid::from_raw(workers[place] as i32), Signal::SIGKILL).unwrap();
        let start = Instant::now();
        sandbox
            .finish(child)
            .ends_with(4)
            .says("error: a process of the search was killed from outside (SIGKILL)\n");
        assert!(start.elapsed() < Duration::from_secs(20));
        wait_until("nobody is left", || workers_of(pid).is_empty());
    }
}

#[test]
fn what_no_explorer_can_do_is_refused_with_what_can() {
    let sandbox = Sandbox::with("short.c", SHORT);
    for (options, message) in [
        (
            &["--equivalence", "reads-from", "--model", "tso"][..],
            "error: tracer is not available under --model tso\n\
             help: available now: --model sc or ra\n",
        ),
        (
            &["--algorithm", "tracer"],
            "error: --algorithm tracer explores one execution for each reads-from class\n\
             help: add --equivalence reads-from\n",
        ),
        (
            &["--algorithm", "source-dpor", "--model", "rc11"],
            "error: source-dpor is not available under --model rc11\n\
             help: available now: --model sc\n",
        ),
        (
            &["--algorithm", "bpor"],
            "error: --algorithm bpor needs a bound\nhelp: add --preemptions K or --iterative\n",
        ),
        (
            &["--algorithm", "source-dpor", "--preemptions", "1"],
            "error: a bound on preemptions cannot be combined with source-dpor\n\
             help: trust supports it under every model, and the bpor algorithms under --model sc\n",
        ),
        (
            &["--plain", "sc", "--model", "ra"],
            "error: --plain sc cannot be combined with --model ra\n\
             help: add --model sc, or make the variables atomic\n",
        ),
        (
            &[
                "--jobs",
                "4",
                "--equivalence",
                "reads-from",
                "--model",
                "sc",
            ],
            "error: --jobs 4 cannot be combined with tracer: writes that it postpones in one part of the tree belong to another\n\
             help: available now: trust, and csdr, csdr-exact and bfs without --lossless\n",
        ),
    ] {
        let outcome = sandbox.run(&[&["verify", "short.c"], options].concat());
        assert_eq!(outcome.ends_with(2).stderr, message);
    }
    let outcome = sandbox.run(&["verify", "short.c", "--algorithm", "guess"]);
    outcome
        .ends_with(2)
        .says("error: invalid value 'guess' for '--algorithm <NAME>'")
        .says("trust, tracer, source-dpor");
}

#[test]
fn every_explorer_counts_the_same() {
    let sandbox = Sandbox::with("short.c", SHORT);
    for options in [
        &["--algorithm", "trust"][..],
        &["--model", "tso"],
        &["--model", "ra"],
        &["--model", "rc11"],
        &["--equivalence", "reads-from"],
        &["--equivalence", "reads-from", "--model", "ra"],
        &["--algorithm", "source-dpor"],
        &["--algorithm", "optimal-dpor"],
        &["--algorithm", "lazy-bpor", "--preemptions", "9"],
    ] {
        let arguments = [&["verify", "short.c", "--format", "json"], options].concat();
        let json = sandbox.run(&arguments).ends_with(0).json();
        assert_eq!(
            (&json["verdict"], &json["executions"]),
            (&"verified".into(), &6.into())
        );
    }
}

#[test]
fn a_bound_on_preemptions_is_named_in_the_verdict() {
    let twice = SHORT.replace("x++;", "x++; x++;").replace("x != 3", "0");
    let sandbox = Sandbox::with("twice.c", &twice);
    let arguments = ["verify", "twice.c", "--preemptions", "0"];
    let outcome = sandbox.run(&arguments);
    outcome
        .ends_with(0)
        .prints("verified within 0 preemptions: no execution fails (6 executions");
    let json = sandbox
        .run(&[&arguments[..], &["--format", "json"]].concat())
        .json();
    assert_eq!(
        (&json["verdict"], &json["bound"]),
        (&"verified".into(), &0.into())
    );
    let sandbox = Sandbox::with("short.c", SHORT);
    let outcome = sandbox.run(&["verify", "short.c", "--iterative"]);
    outcome
        .ends_with(0)
        .prints("verified: no execution fails (6 executions under ");
}

/// The second worker fails if it runs between the two steps of the first one.
const TWO_STEPS: &str = "\
#include <assert.h>
#include <pthread.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static int first, second;
static void *writer(void *unused)
{
    pthread_mutex_lock(&a);
    first = 1;
    pthread_mutex_unlock(&a);
    pthread_mutex_lock(&b);
    second = first + 1;
    pthread_mutex_unlock(&b);
    return unused;
}
static void *reader(void *unused)
{
    pthread_mutex_lock(&a);
    int seen = first;
    pthread_mutex_unlock(&a);
    if (seen == 0)
        return unused;
    pthread_mutex_lock(&b);
    int next = second;
    pthread_mutex_unlock(&b);
    assert(next == seen + 1);
    return unused;
}
int main(void)
{
    pthread_t w, r;
    pthread_create(&w, 0, writer, 0);
    pthread_create(&r, 0, reader, 0);
    pthread_join(w, 0);
    pthread_join(r, 0);
    return 0;
}
";

#[test]
fn a_bug_beyond_the_bound_is_a_warning_and_the_iterative_search_reports_it() {
    let sandbox = Sandbox::with("steps.c", TWO_STEPS);
    let json = |options: &[&str]| {
        let arguments = ["verify", "steps.c", "--model", "sc", "--format", "json"];
        sandbox.run(&[&arguments[..], options].concat()).json()
    };
    let within = json(&["--preemptions", "0"]);
    assert_eq!(within["verdict"], "verified");
    assert_eq!((&within["bound"], &within["bug"]), (&0.into(), &().into()));
    let warnings = within["warnings"].to_string();
    assert!(
        warnings.contains("a bug lies beyond the bound: assertion failed at steps.c:"),
        "{warnings}"
    );
    let iterative = json(&["--iterative"]);
    assert_eq!(iterative["verdict"], "bug");
    assert_eq!(iterative["bug"]["preemptions"], 1);
    let outcome = sandbox.run(&["verify", "steps.c", "--model", "sc", "--preemptions", "0"]);
    outcome.ends_with(0).prints("verified within 0 preemptions");
}

#[test]
fn a_cache_that_cannot_be_written_is_done_without() {
    let sandbox = Sandbox::with("short.c", SHORT);
    for nowhere in ["/proc/nowhere", "relative", ""] {
        let mut command = sandbox.command(&["verify", "short.c"]);
        let child = command
            .env("XDG_CACHE_HOME", nowhere)
            .env_remove("HOME")
            .spawn()
            .unwrap();
        sandbox.finish(child).ends_with(0);
    }
}
