//! How long programs run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Medians of many runs, in microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// From the first constructor to the end.
    pub(super) inside: f64,
    /// The same, of the fastest tenth of all runs: those that nothing else on the machine disturbed.
    undisturbed: f64,
    /// With starting the process and waiting for its end.
    outside: f64,
}

impl Sample {
    /// By how many percent it is slower inside of the process.
    pub(super) fn overhead(&self, plain: &Sample) -> f64 {
        100.0 * (self.inside / plain.inside - 1.0)
    }

    /// The same for runs that nothing disturbed, for small differences.
    pub(super) fn undisturbed_overhead(&self, plain: &Sample) -> f64 {
        100.0 * (self.undisturbed / plain.undisturbed - 1.0)
    }

    /// The same for the whole process.
    pub(super) fn outside_overhead(&self, plain: &Sample) -> f64 {
        100.0 * (self.outside / plain.outside - 1.0)
    }
}

/// Measures programs.
pub(super) struct Timer {
    /// The library that is loaded into them.
    library: PathBuf,
    /// Where it writes to.
    times: PathBuf,
}

impl Timer {
    pub(super) fn build(scratch: &Path) -> Result<Timer, String> {
        let library = scratch.join("timer.so");
        super::steps::run(
            Command::new("cc")
                .args(["-O1", "-shared", "-fPIC", "-o"])
                .arg(&library)
                .arg(super::source("timer.c")),
        )?;
        Ok(Timer {
            library,
            times: scratch.join("times"),
        })
    }

    /// Runs each of the programs, with its prefix file, this many times, in turns.
    pub(super) fn run(
        &self,
        programs: &[(&Path, Option<&Path>)],
        runs: usize,
    ) -> Result<Vec<Sample>, String> {
        let failed = |error: std::io::Error| error.to_string();
        fs::write(&self.times, []).map_err(failed)?;
        let mut outside = vec![Vec::with_capacity(runs); programs.len()];
        for _ in 0..runs {
            for ((program, prefix), outside) in programs.iter().zip(&mut outside) {
                let mut command = Command::new(program);
                command.env_clear();
                command.env("LD_PRELOAD", &self.library);
                command.env("SELVEDGE_TIMES", &self.times);
                if let Some(prefix) = prefix {
                    command.env("SELVEDGE_IRS", prefix);
                }
                command.stdin(Stdio::null()).stdout(Stdio::null());
                let begin = Instant::now();
                let status = command.status().map_err(failed)?;
                outside.push(begin.elapsed().as_secs_f64() * 1e6);
                if !status.success() {
                    return Err(format!("{}: {status}", program.display()));
                }
            }
        }
        let times = fs::read(&self.times).map_err(failed)?;
        let times: Vec<f64> = times
            .as_chunks()
            .0
            .iter()
            .map(|&time| i64::from_le_bytes(time) as f64 / 1e3)
            .collect();
        if times.len() != runs * programs.len() {
            return Err("some runs were not measured".to_owned());
        }
        let samples = outside
            .into_iter()
            .enumerate()
            .map(|(number, mut outside)| {
                let inside = times.iter().skip(number).step_by(programs.len());
                let mut inside: Vec<f64> = inside.copied().collect();
                Sample {
                    inside: quantile(&mut inside, 2),
                    undisturbed: quantile(&mut inside, 10),
                    outside: quantile(&mut outside, 2),
                }
            });
        Ok(samples.collect())
    }
}

/// The largest of the smallest values, of which there are one in so `many`.
fn quantile(values: &mut [f64], many: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / many).copied().unwrap_or(f64::NAN)
}
