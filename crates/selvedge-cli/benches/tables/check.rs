//! One run of `selvedge verify` as a user would start it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike as _};
use serde_json::Value;

/// A program, the options to check it with, and the flags that set its size.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    program: PathBuf,
    options: Vec<String>,
    flags: Vec<String>,
}

/// The result.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// `verified`, `bug`, `bounded`, `incomplete`, …, as in the JSON report.
    pub(crate) verdict: String,
    pub(crate) executions: u64,
    pub(crate) blocked: u64,
    pub(crate) over_bound: u64,
    /// Time of the search alone: neither compiling nor loading.
    pub(crate) time: Duration,
    /// Processor time of everything: compiling, loading, searching. Other programs on the machine
    /// disturb it less. Zero for one of several that were compared.
    pub(crate) processor: Duration,
    /// The whole report.
    pub(crate) report: Value,
}

impl Check {
    /// A check of the program called `name`: one of this benchmark's own, or else an example.
    pub(crate) fn of(name: &str) -> Check {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let own = package.join("benches/tables/programs").join(name);
        let program = if own.exists() {
            own
        } else {
            package.join("../../examples/c").join(name)
        };
        Check {
            program,
            options: Vec::new(),
            flags: Vec::new(),
        }
    }

    /// With these options of the command, separated by spaces.
    pub(crate) fn with(mut self, options: &str) -> Check {
        self.options
            .extend(options.split_whitespace().map(String::from));
        self
    }

    /// With the macro `name` defined as `value`.
    pub(crate) fn define(mut self, name: &str, value: impl std::fmt::Display) -> Check {
        self.flags.push(format!("-D{name}={value}"));
        self
    }

    /// With this flag for the compiler.
    pub(crate) fn flag(mut self, flag: &str) -> Check {
        self.flags.push(flag.to_owned());
        self
    }

    /// The entries of the manifest, one for each example.
    pub(crate) fn example_manifest() -> Vec<Value> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let path = package.join("../../examples/c/manifest.json");
        let text = std::fs::read_to_string(path).unwrap_or_default();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Runs it. What cannot be run at all says why.
    pub(crate) fn run(&self) -> Result<Checked, String> {
        let before = processor_time();
        let report = self.command("verify", &[])?;
        let processor = processor_time().saturating_sub(before);
        Ok(Checked {
            processor,
            ..Checked::new(report)
        })
    }

    /// Runs it with each of these algorithms, separated by commas.
    pub(crate) fn compare(&self, algorithms: &str) -> Result<Vec<Checked>, String> {
        let comparison = self.command("compare", &["--algorithms", algorithms])?;
        let contradictions = comparison["contradictions"].as_array();
        if contradictions.is_some_and(|found| !found.is_empty()) {
            return Err(comparison["contradictions"].to_string());
        }
        let runs = comparison["runs"].as_array().cloned().unwrap_or_default();
        let complete = runs.len() == algorithms.split(',').count();
        let all = runs.into_iter().map(Checked::new).collect();
        Some(all)
            .filter(|_| complete)
            .ok_or_else(|| comparison.to_string())
    }

    fn command(&self, name: &str, more: &[&str]) -> Result<Value, String> {
        let output = Command::new(env!("CARGO_BIN_EXE_selvedge"))
            .arg(name)
            .arg(&self.program)
            .args(&self.options)
            .args(more)
            .args(["--format", "json", "--"])
            .args(&self.flags)
            .output()
            .map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The processor time of the processes that were started from here and have ended.
fn processor_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_CHILDREN) else {
        return Duration::ZERO;
    };
    let micros = |time: TimeVal| Duration::from_micros(time.num_microseconds().unsigned_abs());
    micros(usage.user_time()) + micros(usage.system_time())
}

impl Checked {
    fn new(report: Value) -> Checked {
        let count = |key: &str| report[key].as_u64().unwrap_or(0);
        Checked {
            verdict: report["verdict"].as_str().unwrap_or("?").to_owned(),
            executions: count("executions"),
            blocked: count("blocked"),
            over_bound: count("over_bound"),
            processor: Duration::ZERO,
            time: Duration::from_secs_f64(report["seconds"].as_f64().unwrap_or(f64::NAN)),
            report,
        }
    }

    /// Whether a limit ended the search. (An algorithm that may lose executions is never anything but
    /// incomplete; that says nothing about limits.)
    pub(crate) fn stopped(&self) -> bool {
        let reason = self.report["reason"].as_str().unwrap_or("");
        reason.starts_with("stopped")
    }

    /// Every execution that was run to its end or given up.
    pub(crate) fn traces(&self) -> u64 {
        self.executions + self.blocked + self.over_bound
    }

    /// The executions, marked where the search did not get to its end.
    pub(crate) fn executions(&self) -> String {
        let all = self.executions + self.blocked;
        match self.stopped() {
            true => format!(">{all}"),
            _ if self.blocked > 0 => format!("{}+{}", self.executions, self.blocked),
            _ => all.to_string(),
        }
    }

    /// The time in seconds, marked where the search did not get to its end.
    pub(crate) fn seconds(&self) -> String {
        let seconds = self.time.as_secs_f64();
        match self.stopped() {
            true => format!(">{seconds:.0}"),
            _ => format!("{seconds:.2}"),
        }
    }
}
