//! Random programs under random prefixes: every enforced run comes to its end.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use selvedge_testkit::{c_source, enforceable_programs};

use super::runs::{HANGS, Runs, once, workers};
use super::steps;
use crate::Extent;
use crate::table::Table;

/// The number of programs in one file, each of them an input.
const TOGETHER: usize = 20;
/// How often a program is run under a prefix.
const REPEATED: u32 = 5;
const ORDERS: [&str; 3] = ["ascending", "descending", "turns"];

/// The results.
#[derive(Default)]
struct Found {
    programs: usize,
    prefixes: usize,
    enforced: Runs,
    trouble: Vec<String>,
}

/// Prints how many of them come to their end.
pub(super) fn print(extent: Extent, scratch: &Path) {
    let heading = [
        "programs", "number", "prefixes", "enforced", "failed", "hung",
    ];
    let table = Table::new("Theorem 2: random programs, random prefixes", &heading);
    let batches = if extent.full { 50 } else { 5 };
    let next = AtomicU64::new(0);
    let found = Mutex::new(Found::default());
    let work = || {
        loop {
            let batch = next.fetch_add(1, Ordering::Relaxed);
            if batch >= batches {
                return;
            }
            let outcome = try_batch(batch, &scratch.join(format!("batch{batch}")));
            let mut found = found.lock().expect("nobody panics");
            match outcome {
                Ok(Found {
                    programs,
                    prefixes,
                    enforced,
                    ..
                }) => {
                    found.programs += programs;
                    found.prefixes += prefixes;
                    found.enforced.add(enforced);
                }
                Err(why) => found.trouble.push(format!("batch {batch}: {why}")),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..workers() / 2 {
            scope.spawn(work);
        }
    });
    let found = found.into_inner().expect("nobody panics");
    table.row(&[
        "atomics, mutexes, deadlocks".to_owned(),
        found.programs.to_string(),
        found.prefixes.to_string(),
        found.enforced.runs.to_string(),
        found.enforced.failed.to_string(),
        found.enforced.hung.to_string(),
    ]);
    for why in &found.trouble {
        table.remark(why);
    }
    table.end(&[
        "a prefix is what the verifier has after a random number of executions, from a random initial trace",
    ]);
}

/// Verifies some programs twice, up to different points, and runs each of them under what was proven.
fn try_batch(batch: u64, directory: &Path) -> Result<Found, String> {
    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all(directory).map_err(failed)?;
    let programs = enforceable_programs(1000 * batch, TOGETHER);
    let text = c_source(&programs).ok_or("some program cannot be written in C")?;
    let (source, program) = (directory.join("prog.c"), directory.join("prog"));
    fs::write(&source, text).map_err(failed)?;
    let mut found = Found {
        programs: programs.len(),
        ..Found::default()
    };
    for round in 0..2 {
        let random = (2 * batch + round + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
        let mut verify = steps::verify(&source, &directory.join("prog.irs"));
        verify.args(["--anew", "--timeout", "20", "--max-executions"]);
        verify.arg((TOGETHER as u64 + random % 2000).to_string());
        if let Some(order) = ORDERS.get(random as usize % 4) {
            verify.args(["--order", order]);
        }
        steps::run(&mut verify)?;
        steps::run(&mut steps::build(&source, &program))?;
        found.prefixes += programs.len();
        for input in 0..programs.len() {
            let input = input.to_string();
            for _ in 0..REPEATED {
                let run = once(&program, &[("SELVEDGE_INPUT", &input)], HANGS);
                found.enforced.add(run);
            }
        }
    }
    if found.enforced.failed + found.enforced.hung == 0 {
        let _ = fs::remove_dir_all(directory);
    }
    Ok(found)
}
