//! Executions per second and nanoseconds per event of eight programs, beside the bare cost of
//! running one schedule of each equally often with no search at all, measured in the same run.
//!
//! Then the same search with steps taken back and with every execution run from its start.
//!
//! Then the same search without the comparison of memory with its known contents.
//!
//! Then the interleaving engines beside the graph engine: the same executions, each once, so that
//! times compare step by step.
//!
//! `cargo bench -p selvedge-cli --bench programs`
#![allow(missing_docs)]

use std::path::Path;
use std::process::{Command, exit};

use selvedge_runtime::Protection;
use serde_json::Value;

/// File, options, flags for the compiler.
const PROGRAMS: [(&str, &[&str], &[&str]); 8] = [
    ("micro.c", &["--plain", "sc"], &[]),
    ("event_counter.c", &[], &["-DTHREADS=3", "-DEVENTS=4"]),
    ("spinlock_cas.c", &[], &["-DROUNDS=9"]),
    ("queue_mutex.c", &[], &["-DITEMS=8"]),
    ("treiber_stack.c", &[], &["-DTHREADS=3"]),
    ("lastzero.c", &[], &["-DWRITERS=11"]),
    ("thread_pool.c", &[], &["-DTASKS=3"]),
    ("account.cpp", &[], &["-DTHREADS=7"]),
];

/// Programs that go back often, with the directory of their files.
const UNDONE: [(&str, &str, &[&str], &[&str]); 7] = [
    (EXAMPLES, "micro.c", &["--plain", "sc"], &[]),
    (TABLES, "fibonacci.c", &[], &["-DN=5"]),
    (TABLES, "four_threads.c", &[], &[]),
    (EXAMPLES, "lastzero.c", &[], &["-DWRITERS=15"]),
    (TABLES, "redundant_co.c", &[], &["-DN=5"]),
    (EXAMPLES, "treiber_stack.c", &[], &["-DTHREADS=3"]),
    (EXAMPLES, "mpmc_queue.c", &[], &["-DPRODUCERS=3"]),
];

const EXAMPLES: &str = "../../examples/c";
const TABLES: &str = "benches/tables/programs";

fn main() {
    println!(
        "{:<18} {:>10} {:>9} {:>10} {:>9} {:>9} {:>6} {:>9} {:>9}",
        "program",
        "executions",
        "blocked",
        "per second",
        "ns/event",
        "bare",
        "ratio",
        "MiB start",
        "MiB peak"
    );
    for (file, options, flags) in PROGRAMS {
        match measure(file, options, flags) {
            Ok(measured) => print(file, &measured),
            Err(error) => {
                eprintln!("{file}: {error}");
                exit(1);
            }
        }
    }
    println!();
    println!(
        "All times are processor time. ns/event: the search, over the events of all complete executions;\n\
         bare: one schedule run as often without any search, per event; ratio: the first over the second\n"
    );
    undo();
    comparison();
    interleaving();
}

/// The gain of taking steps back instead of running every execution from its start.
fn undo() {
    println!(
        "{:<18} {:>10} {:>16} {:>16} {:>14} {:>14} {:>6}",
        "program",
        "executions",
        "steps, replayed",
        "steps, undone",
        "replayed/s",
        "undone/s",
        "ratio"
    );
    for (directory, file, options, flags) in UNDONE {
        let [replayed, undone] = ["0", "1"].map(|undo| {
            let path = Path::new(directory).join(file);
            measure_with(("SELVEDGE_UNDO", undo), &path, options, flags).unwrap_or_else(|error| {
                eprintln!("{file}: {error}");
                exit(1);
            })
        });
        let ended = |measured: &Value| {
            let counts = &measured["counts"];
            number(&counts["executions"]) + number(&counts["blocked"])
        };
        let steps = |measured: &Value| number(&measured["steps"]) / ended(measured);
        let rate = |measured: &Value| ended(measured) / nanoseconds(measured, "search") * 1e9;
        println!(
            "{file:<18} {:>10} {:>16.2} {:>16.2} {:>14.0} {:>14.0} {:>6.2}",
            ended(&replayed),
            steps(&replayed),
            steps(&undone),
            rate(&replayed),
            rate(&undone),
            rate(&undone) / rate(&replayed),
        );
    }
    println!(
        "executions: blocked ones included; steps: for each execution; per second of processor time\n"
    );
}

/// The cost of comparing memory with its known contents at every visible operation: the shortest of several searches
/// with it and without, in turns.
fn comparison() {
    const ROUNDS: usize = 7;
    println!(
        "{:<18} {:>10} {:>14} {:>14} {:>7}",
        "ns/event", "executions", "not compared", "compared", "cost"
    );
    for (file, options, flags) in PROGRAMS {
        let mut shortest = [f64::INFINITY; 2];
        let mut executions = 0.0;
        for round in 0..2 * ROUNDS {
            let without = [format!("{:?}", Protection::Comparison), String::new()];
            let variable = (Protection::VARIABLE, &*without[round % 2]);
            let path = Path::new(EXAMPLES).join(file);
            let measured = measure_with(variable, &path, options, flags).unwrap_or_else(|error| {
                eprintln!("{file}: {error}");
                exit(1);
            });
            executions = number(&measured["counts"]["executions"]);
            shortest[round % 2] = shortest[round % 2].min(per_event(&measured));
        }
        let [without, with] = shortest;
        let cost = 100.0 * (with / without - 1.0);
        println!("{file:<18} {executions:>10} {without:>14.1} {with:>14.1} {cost:>6.1}%");
    }
    println!();
}

/// Times per step of engines that visit each execution once. A step is one operation of the
/// program, whether it was taken for the first time, repeated to come back to where a branch is, or
/// belongs to an execution that was given up.
fn interleaving() {
    const ENGINES: [&str; 3] = ["trust", "optimal-dpor", "source-dpor"];
    println!(
        "{:<18} {:>10} {:>14} {:>14} {:>14} {:>16} {:>15} {:>9}",
        "ns/step",
        "executions",
        ENGINES[0],
        ENGINES[1],
        ENGINES[2],
        "optimal / trust",
        "source / trust",
        "given up"
    );
    for (file, options, flags) in PROGRAMS {
        let measure = |engine| {
            let options = [options, &["--algorithm", engine]].concat();
            match measure(file, &options, flags) {
                Ok(measured) => measured,
                Err(error) => {
                    eprintln!("{file}: {error}");
                    exit(1);
                }
            }
        };
        let measured = ENGINES.map(measure);
        let times = measured.each_ref().map(per_step);
        println!(
            "{file:<18} {:>10} {:>14.0} {:>14.0} {:>14.0} {:>16.2} {:>15.2} {:>9}",
            number(&measured[0]["counts"]["executions"]),
            times[0],
            times[1],
            times[2],
            times[1] / times[0],
            times[2] / times[0],
            number(&measured[2]["counts"]["blocked"]),
        );
    }
    println!("given up: executions that source-dpor gave up");
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn nanoseconds(measured: &Value, key: &str) -> f64 {
    number(&measured[key]["secs"]) * 1e9 + number(&measured[key]["nanos"])
}

/// The time of the search, over the events of all complete executions.
fn per_event(measured: &Value) -> f64 {
    nanoseconds(measured, "search") / number(&measured["events"])
}

/// The time of the search, over all steps that it took.
fn per_step(measured: &Value) -> f64 {
    nanoseconds(measured, "search") / number(&measured["steps"])
}

fn measure(file: &str, options: &[&str], flags: &[&str]) -> Result<Value, String> {
    measure_with(
        ("SELVEDGE_UNDO", "1"),
        &Path::new(EXAMPLES).join(file),
        options,
        flags,
    )
}

fn measure_with(
    (variable, value): (&str, &str),
    path: &Path,
    options: &[&str],
    flags: &[&str],
) -> Result<Value, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
        .args(["measure", "--model", "sc"])
        .args(options)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
        .env(variable, value)
        .arg("--")
        .args(flags)
        .output()
        .map_err(|error| error.to_string())?;
    let measured: Value = serde_json::from_slice(&output.stdout)
        .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    match &measured["ending"] {
        ending if ending == "Complete" => Ok(measured),
        ending => Err(format!("the search ended with {ending}")),
    }
}

fn print(file: &str, measured: &Value) {
    let mebibytes = |key: &str| number(&measured[key]) / f64::from(1 << 20);
    let executions = number(&measured["counts"]["executions"]);
    let per_event = per_event(measured);
    let bare = nanoseconds(measured, "bare") / number(&measured["bare_events"]);
    println!(
        "{file:<18} {executions:>10} {:>9} {:>10.0} {per_event:>9.0} {bare:>9.0} {:>6.2} {:>9.1} {:>9.1}",
        number(&measured["counts"]["blocked"]),
        executions / nanoseconds(measured, "search") * 1e9,
        per_event / bare,
        mebibytes("resident_at_start"),
        mebibytes("resident_at_most"),
    );
}
