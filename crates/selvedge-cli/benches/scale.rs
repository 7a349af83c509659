//! The cost of dividing a search: slices, two processes, a checkpoint every second.
//!
//! `cargo bench -p selvedge-cli --bench scale`
//!
//! Everything is compared in processor time, of the command and all of its workers: it hardly depends on what else the
//! machine does, and the shortest of several measurements counts. Compiling and starting are measured alone and taken
//! off. The speed-up is what two idle processors would give: the time of one worker, divided by that of the busier one
//! of two.
#![allow(missing_docs)]

use std::fmt::Display;
use std::fs;
use std::path::Path;
use std::process::{Command, exit};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde_json::Value;

/// File, flags for the compiler.
const PROGRAMS: [(&str, &[&str]); 4] = [
    ("event_counter.c", &["-DTHREADS=3", "-DEVENTS=5"]),
    ("lastzero.c", &["-DWRITERS=16"]),
    ("queue_mutex.c", &["-DITEMS=10"]),
    ("treiber_stack.c", &["-DTHREADS=4"]),
];

/// The number of times that everything is measured, in turns.
const ROUNDS: usize = 7;

/// Options and the length of slices.
const WAYS: [(&[&str], &str); 5] = [
    // Compiling and starting.
    (&["--jobs=1", "--max-executions=1"], "1000000ms"),
    // The whole search in one slice,
    (&["--jobs=1"], "1000000ms"),
    // in slices of half a second, as in a long search,
    (&["--jobs=1"], "500ms"),
    // by two workers,
    (&["--jobs=2"], "500ms"),
    // with checkpoints.
    (&["--jobs=1", "--checkpoint"], "500ms"),
];

/// Processor times, in seconds.
#[derive(Clone, Copy)]
struct Times {
    /// Of the command, its workers and the compiler.
    all: f64,
    /// Of the busiest worker, if there are several.
    busiest: f64,
}

fn main() {
    println!(
        "{:<18} {:>8} {:>8} {:>12} {:>9} {:>12}",
        "program", "seconds", "slices%", "two, total%", "speed-up", "checkpoint%"
    );
    for (file, flags) in PROGRAMS {
        let mut measured = WAYS.map(|_| Vec::new());
        for _ in 0..ROUNDS {
            for ((options, slice), times) in WAYS.iter().zip(&mut measured) {
                times.push(run(file, options, flags, slice));
            }
        }
        let least = |times: &Vec<Times>| {
            let least = times.iter().min_by(|a, b| a.all.total_cmp(&b.all));
            *least.unwrap_or_else(|| fail(file, &"nothing was measured"))
        };
        let measured = measured.each_ref().map(least);
        let start = measured[0].all;
        let [_, whole, slices, two, saved] = measured.map(|times| times.all - start);
        let more = |time: f64, than: f64| 100.0 * (time / than - 1.0);
        println!(
            "{file:<18} {whole:>8.2} {:>8.1} {:>12.1} {:>9.2} {:>12.1}",
            more(slices, whole),
            more(two, whole),
            whole / measured[3].busiest,
            more(saved, slices),
        );
    }
}

/// Runs a search to its end.
fn run(file: &str, options: &[&str], flags: &[&str], slice: &str) -> Times {
    let checkpoint = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scale.search");
    let mut command = Command::new(env!("CARGO_BIN_EXE_selvedge"));
    command
        .args(["verify", "--format=json"])
        .args(options)
        .env("SELVEDGE_SLICE", slice);
    if options.contains(&"--checkpoint") {
        let _ = fs::remove_file(&checkpoint);
        command.arg(&checkpoint);
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    command.arg(examples.join(file)).arg("--").args(flags);
    let before = processor_time();
    let output = command.output().unwrap_or_else(|error| fail(file, &error));
    let all = processor_time() - before;
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
