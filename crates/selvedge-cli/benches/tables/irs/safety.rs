//! Programs that fail when they run freely, and do not when they keep to what is verified.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::runs::{HANGS, repeat};
use super::steps;
use crate::Extent;
use crate::table::Table;

/// Programs, how they are verified and compiled, and how often they are run under enforcement.
const PROGRAMS: [(&str, &[&str], &[&str], u32); 6] = [
    ("lost_update.c", &["--plain", "sc"], &["-DN=8"], 100_000),
    ("too_early.c", &["--plain", "sc"], &[], 100_000),
    ("philosophers.c", &[], &["-DN=3"], 100_000),
    ("lost_update.c", &["--plain", "sc"], &["-DN=32"], 20_000),
    ("philosophers.c", &[], &["-DN=4"], 20_000),
    ("lost_signal.c", &["--plain", "sc"], &[], 20_000),
];

/// Free runs that hang are not waited for that long.
const HANGS_FREE: Duration = Duration::from_millis(300);

/// Prints how often they fail.
pub(super) fn print(extent: Extent, scratch: &Path) {
    let title = "Theorem 1: programs that fail when they run freely";
    let heading = [
        "program",
        "free runs",
        "failed",
        "enforced",
        "failed",
        "hung",
    ];
    let table = Table::new(title, &heading);
    for (file, options, flags, runs) in PROGRAMS {
        let (free, runs) = if extent.full {
            (1000, runs)
        } else {
            (200, runs / 50)
        };
        let name = format!("{file} {}", flags.join(" "));
        match build(file, options, flags, scratch) {
            Ok((plain, kept)) => {
                let freely = repeat(&plain, free, HANGS_FREE);
                let kept = repeat(&kept, runs, HANGS);
                table.row(&[
                    name,
                    freely.runs.to_string(),
                    (freely.failed + freely.hung).to_string(),
                    kept.runs.to_string(),
                    kept.failed.to_string(),
                    kept.hung.to_string(),
                ]);
            }
            Err(why) => table.row(&[name, why]),
        }
    }
    table.end(&[
        "a free run that takes 0.3 seconds, and an enforced one that takes 30, hangs; several run at once",
    ]);
}

/// One of these programs.
pub(super) fn source(file: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    directory.join("tests/irs").join(file)
}

fn build(
    file: &str,
    options: &[&str],
    flags: &[&str],
    scratch: &Path,
) -> Result<(PathBuf, PathBuf), String> {
    let source = source(file);
    let (plain, kept) = (scratch.join("free"), scratch.join("kept"));
    let mut compile = Command::new("cc");
    compile
        .args(["-g", "-O0", "-pthread", "-o"])
        .arg(&plain)
        .arg(&source)
        .args(flags);
    steps::run(&mut compile)?;
    let mut verify = steps::verify(&source, &scratch.join("kept.irs"));
    verify.args(["--anew", "--timeout", "20"]).args(options);
    steps::run(verify.arg("--").args(flags))?;
    steps::run(steps::build(&source, &kept).arg("--").args(flags))?;
    Ok((plain, kept))
}
