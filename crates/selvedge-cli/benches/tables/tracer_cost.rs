//! The cost of reads-from beside graphs, and of weaker models beside sequential consistency.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::Value;

use crate::Extent;
use crate::check::Check;
use crate::table::Table;
use crate::tracer::{GRAPHS, READS_FROM};

/// Prints all of it.
pub(crate) fn print(extent: Extent) {
    examples();
    searches(extent);
    models(extent);
}

/// Microseconds of processor time per execution, the best of some runs, and how many executions there are. What
/// compiling and loading take is measured apart and taken off.
fn cost(check: &Check, runs: u32) -> Result<(u64, f64), String> {
    let nothing = check.clone().with("--max-executions 1");
    let mut overhead = Duration::MAX;
    let mut best = (0, Duration::MAX);
    for _ in 0..runs {
        overhead = overhead.min(nothing.run()?.processor);
        let checked = check.run()?;
        best = (checked.executions, best.1.min(checked.processor));
    }
    let (executions, time) = best;
    let micros = time.saturating_sub(overhead).as_secs_f64() * 1e6;
    Ok((executions, micros / executions.max(1) as f64))
}

const BEST_OF: &str = "processor time, the best of several runs";

fn runs(extent: Extent) -> u32 {
    if extent.full { 5 } else { 3 }
}

/// The name of an example, and a check of it.
fn example(entry: &Value) -> Option<(String, Check)> {
    let texts = |key: &str| {
        let all = entry[key].as_array()?.iter();
        all.map(|text| text.as_str().map(String::from))
            .collect::<Option<Vec<String>>>()
    };
    let file = entry["file"].as_str()?;
    let plain = texts("options")?.iter().any(|option| option == "--plain");
    let flags = texts("flags")?;
    let name = format!("{file} {}", flags.join(" ")).trim_end().to_owned();
    let check = Check::of(file).with("--keep-going --no-advice --timeout 60");
    let check = flags.iter().fold(check, |check, flag| check.flag(flag));
    (!plain).then_some((name, check))
}

/// Reads-from has never more executions than there are graphs: on all examples.
fn examples() {
    let table = Table::new(
        "Reads-from beside graphs, all examples (ra)",
        &["program", "executions", "blocked", "graphs", "blocked"],
    );
    let manifest = Check::example_manifest();
    let (mut equal, mut fewer, mut blocked) = (0, 0, [0, 0]);
    for (name, check) in manifest.iter().filter_map(example) {
        let of = |options| check.clone().with(options).run();
        let (Ok(classes), Ok(graphs)) = (of(READS_FROM), of(GRAPHS)) else {
            table.row(&[name, "?".to_owned()]);
            continue;
        };
        blocked[0] += classes.blocked;
        blocked[1] += graphs.blocked;
        match classes.executions.cmp(&graphs.executions) {
            Ordering::Less => fewer += 1,
            Ordering::Equal => equal += 1,
            Ordering::Greater => {}
        }
        let more = classes.executions > graphs.executions;
        if more || classes.blocked > 0 {
            table.row(&[
                name,
                classes.executions.to_string(),
                classes.blocked.to_string(),
                graphs.executions.to_string(),
                graphs.blocked.to_string(),
            ]);
            if more {
                table.remark("MORE THAN THERE ARE GRAPHS");
            }
        }
    }
    table.end(&[
        &format!("listed: those with blocked executions under reads-from, or more executions; of all, {equal} have as many and {fewer} fewer"),
        "blocked: waiting for ever, cut short by undefined behaviour, or gone round in a loop in vain",
        &format!("in all: {} and {}; docs/reads-from.md says what is left under reads-from", blocked[0], blocked[1]),
    ]);
}

/// Where both explore as many executions, reads-from must not cost more than a quarter more.
fn searches(extent: Extent) {
    let table = Table::new(
        "Reads-from beside graphs, where there are as many classes as graphs (ra)",
        &[
            "program",
            "executions",
            "us each",
            "graphs",
            "us each",
            "ratio",
        ],
    );
    let programs = [
        ("indexer_mutex.c", "N", 15),
        ("filesystem.c", "THREADS", 25),
        ("critical_sections.c", "N", 9),
        ("fibonacci.c", "N", 5),
        ("ticket_mutex.c", "ROUNDS", 20),
        ("spinlock_cas.c", "ROUNDS", 8),
        ("ticket_lock.c", "THREADS", 7),
        ("mcs_lock.c", "THREADS", 4),
    ];
    for (program, by, size) in programs {
        let of = |options| {
            let check = Check::of(program).with(options).define(by, size);
            cost(&check, runs(extent))
        };
        match (of(READS_FROM), of(GRAPHS)) {
            (Ok((classes, one)), Ok((graphs, other))) => table.row(&[
                format!("{program} {by}={size}"),
                classes.to_string(),
                format!("{one:.1}"),
                graphs.to_string(),
                format!("{other:.1}"),
                format!("{:.2}", one / other),
            ]),
            (Err(error), _) | (_, Err(error)) => table.row(&[format!("{program}: {error}")]),
        }
    }
    table.end(&["ratio: 1.25 is what is allowed", BEST_OF]);
}

/// The cost of an execution under each model, beside sequential consistency.
fn models(extent: Extent) {
    let table = Table::new(
        "Microseconds per execution under each model",
        &["program", "sc", "tso", "ra", "rc11", "worst ratio"],
    );
    let programs = [
        ("lastzero.c", "WRITERS", 11),
        ("critical_sections.c", "N", 9),
        ("fibonacci.c", "N", 4),
        ("treiber_stack.c", "THREADS", 3),
        ("indexer_mutex.c", "N", 15),
        ("exponential_bug.c", "N", 2),
        ("micro_atomic.c", "N", 3),
    ];
    for (program, name, size) in programs {
        let of = |model| {
            let options = format!("--model {model} --timeout 60");
            let check = Check::of(program).with(&options).define(name, size);
            cost(&check, runs(extent)).map(|(_, each)| each)
        };
        let each: Result<Vec<f64>, String> =
            ["sc", "tso", "ra", "rc11"].into_iter().map(of).collect();
        match each {
            Ok(each) => {
                let worst = each
                    .iter()
                    .fold(0.0_f64, |worst, one| worst.max(one / each[0]));
                let mut cells = vec![format!("{program} {name}={size}")];
                cells.extend(each.iter().map(|one| format!("{one:.1}")));
                cells.push(format!("{worst:.2}"));
                table.row(&cells);
            }
            Err(error) => table.row(&[format!("{program}: {error}")]),
        }
    }
    table.end(&["worst ratio: 1.5 is what is allowed", BEST_OF]);
}
