//! `--tune`: which of several prefixes, all of them proven, is the fastest one to keep to.
//!
//! The document's Section 5 finds that the structure of the constraints matters more than their
//! number. The verifier has a rule of thumb for that; measuring is better, where the program can be
//! run.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use selvedge_enforce::Policy;
use selvedge_irs_format::{Flags, View};

use super::build;
use crate::args::IrsBuild;
use crate::compile::Compiled;
use crate::output;
use crate::problem::Problem;

/// The orders of threads in the first schedule that are tried; the first one is the verifier's own
/// choice.
const ORDERS: [Option<&str>; 4] = [None, Some("ascending"), Some("descending"), Some("turns")];
/// How often the program is run under each prefix.
const RUNS: usize = 40;
/// A proof has at least this many executions, and takes at most this many seconds.
const LEAST: u64 = 64;
const SECONDS: &str = "20";
/// A program that runs for so long is not one that can be measured like this.
const LONGEST: Duration = Duration::from_secs(10);

/// A prefix and the program built for it.
struct Candidate {
    name: String,
    prefix: Vec<u8>,
    file: PathBuf,
    program: PathBuf,
    times: Vec<Duration>,
}

/// The fastest of `prefix` and of those that as much work proves with other initial traces.
pub(super) fn fastest(
    request: &IrsBuild,
    compiled: &Compiled,
    prefix: &[u8],
) -> Result<Vec<u8>, Problem> {
    let damaged = |damage: selvedge_irs_format::Damage| Problem::request(damage.to_string());
    let view = View::new(prefix).map_err(damaged)?;
    let executions = view.traces().max(LEAST);
    let plain = match view.flags().contains(Flags::PLAIN_EVENTS) {
        true => "--plain=sc",
        false => "--plain=race",
    };
    let mut candidates = vec![Candidate::new(
        "as it is".to_owned(),
        prefix.to_owned(),
        compiled,
        0,
    )?];
    for (number, order) in ORDERS.into_iter().enumerate() {
        let file = compiled.scratch().join(format!("proven{number}.irs"));
        let Some(proven) = prove(request, order, executions, plain, &file)? else {
            continue;
        };
        let lineage = View::new(&proven).map_err(damaged)?.lineage();
        let known = |candidate: &Candidate| {
            View::new(&candidate.prefix).is_ok_and(|view| view.lineage() == lineage)
        };
        if !candidates.iter().any(known) {
            let name = order.map_or("the fewest threads wait".to_owned(), |order| {
                format!("threads {order}")
            });
            // One that cannot be enforced is none.
            candidates.extend(Candidate::new(name, proven, compiled, 1 + number));
        }
    }
    for _ in 0..RUNS {
        for candidate in &mut candidates {
            let time = candidate.run()?;
            candidate.times.push(time);
        }
    }
    let mut best = (0, Duration::MAX);
    let mut text = String::new();
    for (number, candidate) in candidates.iter_mut().enumerate() {
        candidate.times.sort();
        let median = candidate.times[RUNS / 2];
        text += &format!("{}: {} µs\n", candidate.name, median.as_micros());
        if median < best.1 {
            best = (number, median);
        }
    }
    text += &format!("kept: {}\n", candidates[best.0].name);
    output::print(&text);
    Ok(candidates.swap_remove(best.0).prefix)
}

/// Has the verifier work with another initial trace.
fn prove(
    request: &IrsBuild,
    order: Option<&str>,
    executions: u64,
    plain: &str,
    file: &Path,
) -> Result<Option<Vec<u8>>, Problem> {
    let failed =
        |error: std::io::Error| Problem::internal(format!("the verifier does not start: {error}"));
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    command.args(["irs", "verify", "--anew", plain, "--timeout", SECONDS]);
    if let Some(order) = order {
        command.args(["--order", order]);
    }
    command.arg("--max-executions").arg(executions.to_string());
    command.arg("-o").arg(file);
    command.args(request.sources.arguments());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().map_err(failed)?;
    Ok(fs::read(file).ok())
}

impl Candidate {
    fn new(
        name: String,
        prefix: Vec<u8>,
        compiled: &Compiled,
        number: usize,
    ) -> Result<Candidate, Problem> {
        let program = compiled.scratch().join(format!("tuned{number}"));
        let file = build::beside(&program);
        fs::write(&file, &prefix)
            .map_err(|error| Problem::internal(format!("{}: {error}", file.display())))?;
        build::executable(compiled, &build::read(&file)?, Policy::Abort, &program)?;
        Ok(Candidate {
            name,
            prefix,
            file,
            program,
            times: Vec::with_capacity(RUNS),
        })
    }

    /// How long the program takes.
    fn run(&self) -> Result<Duration, Problem> {
        let failed =
            |error: std::io::Error| Problem::internal(format!("the program does not run: {error}"));
        let mut command = Command::new(&self.program);
        command.env("SELVEDGE_IRS", &self.file);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let begin = Instant::now();
        let mut child = command.spawn().map_err(failed)?;
        loop {
            match child.try_wait().map_err(failed)? {
                Some(status) if status.success() => return Ok(begin.elapsed()),
                Some(status) => return Err(unmeasured(&format!("it ends with {status}"))),
                None if begin.elapsed() > LONGEST => {
                    stop(&mut child);
                    return Err(unmeasured("it takes more than ten seconds"));
                }
                None => thread::sleep(Duration::from_micros(20)),
            }
        }
    }
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn unmeasured(why: &str) -> Problem {
    Problem::request(format!("the program cannot be measured: {why}"))
        .note("it is run without arguments and without input")
        .help("build it without --tune")
}
