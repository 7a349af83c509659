//! How close estimates come to the truth: random descents that take a twentieth of the time of the search, and what
//! the search itself shows when a twentieth of it is done, or as soon as it shows anything.
//!
//! `cargo bench -p selvedge-cli --bench estimates`
#![allow(missing_docs)]

use std::path::Path;
use std::process::{Command, exit};
use std::time::Instant;

use serde_json::Value;

/// File, options, flags for the compiler.
const PROGRAMS: [(&str, &[&str], &[&str]); 12] = [
    ("lastzero.c", &[], &["-DWRITERS=16"]),
    ("queue_mutex.c", &[], &["-DITEMS=10"]),
    ("spinlock_cas.c", &[], &["-DROUNDS=10"]),
    ("event_counter.c", &[], &["-DTHREADS=3", "-DEVENTS=5"]),
    ("ticket_lock.c", &[], &["-DTHREADS=8"]),
    ("barrier_sense.c", &[], &["-DTHREADS=4"]),
    ("thread_pool.c", &[], &["-DTASKS=4"]),
    ("chase_lev.c", &[], &["-DTHIEVES=3"]),
    ("account.cpp", &[], &["-DTHREADS=8"]),
    ("rwlock_atomic.c", &[], &["-DREADERS=4", "-DWRITERS=3"]),
    ("ms_queue.c", &[], &["-DPRODUCERS=4", "-DCONSUMERS=2"]),
    ("seqlock.c", &[], &["-DREADERS=3", "-DUPDATES=4"]),
];

fn main() {
    println!(
        "{:<18} {:>11} {:>8} {:>12} {:>6} {:>12} {:>6} {:>6}",
        "program", "executions", "seconds", "after 5%", "ratio", "shown", "at%", "ratio"
    );
    let (mut close, mut close_shown, mut all) = (0, 0, 0);
    for (file, options, flags) in PROGRAMS {
        let Some((truth, seconds, shown)) = search(file, options, flags) else {
            println!("{file:<18} has no result after a minute");
            continue;
        };
        if seconds <= 1.0 {
            println!("{file:<18} {truth:>11} {seconds:>8.1} too short");
            continue;
        }
        let time = format!("{}", seconds / 20.0);
        let estimate = run(
            "estimate",
            &[options, &["--timeout", &time, "--format=json"]].concat(),
            file,
            flags,
        );
        let estimate = estimate
            .last()
            .and_then(|result| result["executions"].as_f64());
        let ratio = |estimate: Option<f64>| estimate.map_or(0.0, |estimate| estimate / truth);
        let is_close = |estimate| u32::from((0.5..=2.0).contains(&ratio(estimate)));
        let (at, shown) = shown.unzip();
        close += is_close(estimate);
        close_shown += is_close(shown);
        all += 1;
        println!(
            "{file:<18} {truth:>11} {seconds:>8.1} {:>12} {:>6.2} {:>12} {:>6.1} {:>6.2}",
            estimate.unwrap_or_default(),
            ratio(estimate),
            shown.unwrap_or_default(),
            100.0 * at.unwrap_or_default() / seconds,
            ratio(shown),
        );
    }
    println!(
        "\nwithin a factor of two: {close} of {all} after 5%, {close_shown} of {all} as shown"
    );
}

/// When an estimate was shown, and the estimate.
type Shown = (f64, f64);

/// The number of executions, how long they took, and the first estimate that was shown after a twentieth of that.
fn search(file: &str, options: &[&str], flags: &[&str]) -> Option<(f64, f64, Option<Shown>)> {
    let start = Instant::now();
    let options = [options, &["--jobs=1", "--timeout=60", "--format=jsonl"]].concat();
    let events = run("verify", &options, file, flags);
    let seconds = start.elapsed().as_secs_f64();
    let shown = events.iter().find_map(|event| {
        let at = event["seconds"]
            .as_f64()
            .filter(|&at| at >= seconds / 20.0)?;
        Some((at, event["estimate"]["executions"].as_f64()?))
    });
    let result = events
        .last()
        .filter(|event| event["verdict"] == "verified")?;
    Some((result["executions"].as_f64()?, seconds, shown))
}

/// The output of the command, line by line.
fn run(command: &str, options: &[&str], file: &str, flags: &[&str]) -> Vec<Value> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c");
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .arg(command)
        .args(options)
        .arg(examples.join(file))
        .arg("--")
        .args(flags)
        .output();
    let output = output.unwrap_or_else(|error| {
        eprintln!("{error}");
        exit(1);
    });
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line| serde_json::from_str(line).ok();
    match text.starts_with("{\n") {
        true => line(&text).into_iter().collect(),
        false => text.lines().filter_map(line).collect(),
    }
}
