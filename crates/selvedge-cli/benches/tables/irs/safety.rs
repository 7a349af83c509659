//! Programs that fail when they run freely, and do not when they keep to what is verified.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::steps;
use crate::Extent;
use crate::table::Table;

const PROGRAMS: [(&str, &[&str], &[&str]); 6] = [
    ("lost_update.c", &["--plain", "sc"], &["-DN=8"]),
    ("lost_update.c", &["--plain", "sc"], &["-DN=32"]),
    ("too_early.c", &["--plain", "sc"], &[]),
    ("philosophers.c", &[], &["-DN=3"]),
    ("philosophers.c", &[], &["-DN=4"]),
    ("lost_signal.c", &["--plain", "sc"], &[]),
];

/// A program that takes so long hangs.
const HANGS: Duration = Duration::from_secs(30);
/// Free runs that hang are not waited for that long.
const HANGS_FREE: Duration = Duration::from_millis(300);

/// Prints how often they fail.
pub(super) fn print(extent: Extent, scratch: &Path) {
    let (free, enforced) = if extent.full {
        (1000, 100_000)
    } else {
        (200, 2000)
    };
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
    for (file, options, flags) in PROGRAMS {
        let name = format!("{file} {}", flags.join(" "));
        match measure(file, options, flags, scratch) {
            Ok((plain, kept)) => {
                let freely = repeat(&plain, free, HANGS_FREE);
                let kept = repeat(&kept, enforced, HANGS);
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
    table.end(&[]);
}

fn measure(
    file: &str,
    options: &[&str],
    flags: &[&str],
    scratch: &Path,
) -> Result<(PathBuf, PathBuf), String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/irs")
        .join(file);
    let (plain, kept) = (scratch.join("free"), scratch.join("kept"));
    let prefix = scratch.join("kept.irs");
    let mut compile = Command::new("cc");
    compile
        .args(["-g", "-O0", "-pthread", "-o"])
        .arg(&plain)
        .arg(&source)
        .args(flags);
    steps::run(&mut compile)?;
    let selvedge = env!("CARGO_BIN_EXE_selvedge");
    let mut verify = Command::new(selvedge);
    verify
        .args(["irs", "verify", "--anew", "--timeout", "20", "-o"])
        .arg(&prefix)
        .arg(&source);
    steps::run(verify.args(options).arg("--").args(flags))?;
    let mut build = Command::new(selvedge);
    build.args(["irs", "build", "-o"]).arg(&kept).arg(&source);
    steps::run(build.arg("--").args(flags))?;
    Ok((plain, kept))
}

#[derive(Default)]
struct Runs {
    runs: u32,
    failed: u32,
    hung: u32,
}

fn repeat(program: &Path, runs: u32, hangs: Duration) -> Runs {
    let mut result = Runs::default();
    // A handful of hangs is evidence enough.
    while result.runs < runs && result.hung < 10 {
        result.runs += 1;
        let mut command = Command::new(program);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.spawn() else {
            result.failed += 1;
            continue;
        };
        let begin = Instant::now();
        loop {
            match child.try_wait() {
                Ok(Some(status)) => {
                    result.failed += u32::from(!status.success());
                    break;
                }
                _ if begin.elapsed() > hangs => {
                    result.hung += 1;
                    let _ = child.kill();
                    let _ = child.wait();
                    break;
                }
                _ => thread::sleep(Duration::from_micros(50)),
            }
        }
    }
    result
}
