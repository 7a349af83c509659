//! The verifier is killed at many moments: the prefix file that it leaves is whole, asks for no
//! more than the one before, and is safe.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use selvedge_irs_format::{View, weaker};

use super::runs::{HANGS, Runs, once};
use super::{safety, steps};
use crate::Extent;
use crate::table::Table;

/// A program that fails when it runs freely, and that takes long to be verified.
const PROGRAM: &str = "lost_update.c";
const OPTIONS: [&str; 2] = ["--plain", "sc"];
const FLAGS: [&str; 2] = ["--", "-DN=8"];
/// The verifier begins anew after this many rounds, so that it is killed early as well.
const ANEW_AFTER: u64 = 20;

/// The results.
#[derive(Default)]
struct Found {
    files: u32,
    damaged: u32,
    stricter: u32,
    enforced: Runs,
    /// How many constraints there were at least.
    constraints: Option<usize>,
}

/// Prints how that went.
pub(super) fn print(extent: Extent, scratch: &Path) {
    let heading = [
        "program", "kills", "files", "damaged", "stricter", "enforced", "failed", "hung",
    ];
    let table = Table::new("The verifier is killed", &heading);
    let kills = if extent.full { 100 } else { 20 };
    match kill(kills, if extent.full { 50 } else { 10 }, scratch) {
        Ok(found) => {
            table.row(&[
                PROGRAM.to_owned(),
                kills.to_string(),
                found.files.to_string(),
                found.damaged.to_string(),
                found.stricter.to_string(),
                found.enforced.runs.to_string(),
                found.enforced.failed.to_string(),
                found.enforced.hung.to_string(),
            ]);
            let least = found.constraints.unwrap_or(0);
            table.end(&[
                "the program is run under each file that was left behind",
                &format!("the proof came down to {least} constraints meanwhile"),
            ]);
        }
        Err(why) => table.end(&[&why]),
    }
}

fn kill(kills: u64, runs: u32, scratch: &Path) -> Result<Found, String> {
    let failed = |error: std::io::Error| error.to_string();
    let source = safety::source(PROGRAM);
    // Built without a prefix, it can be run under any.
    let program = scratch.join("any");
    let file = scratch.join("killed.irs");
    let left = scratch.join("left");
    for old in [&file, &scratch.join("any.irs")] {
        let _ = fs::remove_file(old);
    }
    steps::run(steps::build(&source, &program).args(FLAGS))?;
    let mut found = Found::default();
    let mut earlier: Option<Vec<u8>> = None;
    // How long it takes to the first file on this machine, as busy as it is.
    let mut first = None;
    for round in 0..kills {
        // Whoever is killed cannot clean up.
        let _ = fs::remove_dir_all(&left);
        fs::create_dir(&left).map_err(failed)?;
        if round % ANEW_AFTER == 0 {
            let _ = fs::remove_file(&file);
            earlier = None;
        }
        let mut verify = steps::verify(&source, &file);
        verify
            .args(OPTIONS)
            .args(FLAGS)
            .env("TMPDIR", &left)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begin = Instant::now();
        let mut child = verify.spawn().map_err(failed)?;
        match first {
            // Nobody cares which moments these are, as long as they differ, and some come before
            // that file.
            Some(first) => sleep(Duration::mul_f64(
                first,
                0.5 + (round * 7919 % 311) as f64 / 100.0,
            )),
            None => {
                while !file.exists() && begin.elapsed() < HANGS {
                    sleep(Duration::from_millis(1));
                }
                first = Some(begin.elapsed());
            }
        }
        child.kill().map_err(failed)?;
        child.wait().map_err(failed)?;
        let Ok(now) = fs::read(&file) else {
            found.damaged += u32::from(earlier.is_some());
            continue;
        };
        found.files += 1;
        let Ok(view) = View::new(&now) else {
            found.damaged += 1;
            continue;
        };
        let before = earlier.as_deref().and_then(|bytes| View::new(bytes).ok());
        found.stricter += u32::from(before.is_some_and(|before| weaker(before, view).is_err()));
        let constraints = view.inputs().map(|input| input.waits()).sum();
        found.constraints = found.constraints.into_iter().chain([constraints]).min();
        let name = file.to_str().ok_or("the path is not UTF-8")?;
        for _ in 0..runs {
            let run = once(&program, &[("SELVEDGE_IRS", name)], HANGS);
            found.enforced.add(run);
        }
        earlier = Some(now);
    }
    let _ = fs::remove_dir_all(&left);
    Ok(found)
}
