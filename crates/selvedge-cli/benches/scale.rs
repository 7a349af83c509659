//! The cost of dividing a search: slices, two processes, a checkpoint every second.
//!
//! `cargo bench -p selvedge-cli --bench scale`
//!
//! Everything is compared in processor time, of the command and all of its workers: it hardly depends on what else the
//! machine does, and the shortest of several measurements counts. Compiling and starting are measured alone and taken
//! off. The speed-up is what two idle processors would give: the time of one worker, divided by that of the busier one
//! of two. The last columns are what the clock says, compiling included, for one and two workers; on an idle machine
//! their ratio is the same.
#![allow(missing_docs)]

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::Value;

/// File, options, flags for the compiler.
const PROGRAMS: [(&str, &[&str], &[&str]); 5] = [
    ("event_counter.c", &[], &["-DTHREADS=3", "-DEVENTS=5"]),
    ("lastzero.c", &[], &["-DWRITERS=16"]),
    (
        "micro.c",
        &["--plain=sc", "--preemptions=2"],
        &["-DTHREADS=4"],
    ),
    ("queue_mutex.c", &[], &["-DITEMS=10"]),
    ("treiber_stack.c", &[], &["-DTHREADS=4"]),
];

/// The number of times that everything is measured, in turns.
const ROUNDS: usize = 5;

/// Options, and the length of slices. If it is set, no random descents are made.
const WAYS: [(&[&str], &str); 7] = [
    // Compiling and starting.
    (&["--jobs=1", "--max-executions=1"], "1000000ms"),
    // The whole search in one slice,
    (&["--jobs=1"], "1000000ms"),
    // in slices of half a second, as in a long search,
    (&["--jobs=1"], "500ms"),
    // the same with random descents, which tell how much is left,
    (&["--jobs=1"], ""),
    // by two workers,
    (&["--jobs=2"], "500ms"),
    // in slices of a second,
    (&["--jobs=1"], "1000ms"),
    // and with a checkpoint after each of them.
    (&["--jobs=1", "--checkpoint"], "1000ms"),
];

/// Times in seconds.
#[derive(Clone, Copy)]
struct Times {
    /// Processor time of the command, its workers and the compiler.
    all: f64,
    /// The processor time of the busiest worker, if there are several.
    busiest: f64,
    /// The time by the clock.
    clock: f64,
}

fn main() {
    println!(
        "{:<18} {:>8} {:>9} {:>8} {:>10} {:>11} {:>9} {:>12} {:>8} {:>8}",
        "program",
        "seconds",
        "as units%",
        "slices%",
        "descents%",
        "two, total%",
        "speed-up",
        "checkpoint%",
        "one",
        "two"
    );
    for (file, options, flags) in PROGRAMS {
        let mut measured = WAYS.map(|_| Vec::new());
        let mut plain = f64::INFINITY;
        for _ in 0..ROUNDS {
            plain = plain.min(without_units(file, options, flags));
            for ((way, slice), times) in WAYS.iter().zip(&mut measured) {
                times.push(run(file, &[way, options].concat(), flags, slice));
            }
        }
        let least = |times: &Vec<Times>| {
            let least = times.iter().min_by(|a, b| a.all.total_cmp(&b.all));
            *least.unwrap_or_else(|| fail(file, &"nothing was measured"))
        };
        let clock = |way: usize| {
            let times: &Vec<Times> = &measured[way];
            times
                .iter()
                .map(|times| times.clock)
                .fold(f64::INFINITY, f64::min)
        };
        let (one, both) = (clock(2), clock(4));
        let measured = measured.each_ref().map(least);
        let start = measured[0].all;
        let [_, whole, slices, ordinary, two, seconds, saved] =
            measured.map(|times| times.all - start);
        let more = |time: f64, than: f64| 100.0 * (time / than - 1.0);
        println!(
            "{file:<18} {whole:>8.2} {:>9.1} {:>8.1} {:>10.1} {:>11.1} {:>9.2} {:>12.1} {one:>8.2} {both:>8.2}",
            more(whole, plain),
            more(slices, whole),
            more(ordinary, slices),
            more(two, whole),
            whole / measured[4].busiest,
            more(saved, seconds),
        );
    }
}

/// The processor time of a search of the core that knows nothing of units; without a bound, which that does not take.
fn without_units(file: &str, options: &[&str], flags: &[&str]) -> f64 {
    if options
        .iter()
        .any(|option| option.starts_with("--preemptions"))
    {
        return f64::NAN;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command.arg("measure").args(options);
    let output = command
        .arg(examples().join(file))
        .arg("--")
        .args(flags)
        .output();
    let output = output.unwrap_or_else(|error| fail(file, &error));
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| fail(file, &error));
    let part = |name: &str| result["search"][name].as_f64();
    match (part("secs"), part("nanos")) {
        (Some(seconds), Some(nanoseconds)) => seconds + nanoseconds / 1e9,
        _ => fail(file, &result),
    }
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c")
}

/// Runs a search to its end.
fn run(file: &str, options: &[&str], flags: &[&str], slice: &str) -> Times {
    let checkpoint = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scale.search");
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .args(["verify", "--format=json"])
        .env("SELVEDGE_SLICE", slice);
    for option in options {
        command.arg(option);
        if *option == "--checkpoint" {
            let _ = fs::remove_file(&checkpoint);
            command.arg(&checkpoint);
        }
    }
    command.arg(examples().join(file)).arg("--").args(flags);
    let (before, begun) = (processor_time(), Instant::now());
    let output = command.output().unwrap_or_else(|error| fail(file, &error));
    let (all, clock) = (processor_time() - before, begun.elapsed().as_secs_f64());
    let result: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| fail(file, &error));
    let whole = !options.contains(&"--max-executions=1");
    if whole && result["verdict"] != "verified" {
        fail(file, &result["verdict"]);
    }
    let workers = result["processor_seconds"].as_array();
    let workers = workers.into_iter().flatten().filter_map(Value::as_f64);
    Times {
        all,
        busiest: workers.fold(0.0, f64::max),
        clock,
    }
}

/// The processor time of all processes that have ended.
fn processor_time() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap_or_else(|error| fail("time", &error));
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

fn fail(what: &str, error: &dyn Display) -> ! {
    eprintln!("{what}: {error}");
    exit(1);
}
