//! One round: a file of programs, a command line, something that goes wrong, and the comparison.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use selvedge_testkit::random::Random;
use serde_json::Value;

use crate::programs::Programs;

/// How many commands were killed that had saved something and were still searching.
pub(crate) static KILLED: AtomicU64 = AtomicU64::new(0);

/// A command that takes longer has hung.
const HANGS: &str = "120";

/// The trouble that a run is put into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// A limit on executions.
    Executions,
    /// A limit on time.
    Time,
    /// A worker is killed.
    KilledWorker,
    /// The command is killed and the search resumed.
    KilledCommand,
    /// A trace and a report cannot be written.
    FullDisk,
    /// Standard output cannot be written.
    FullOutput,
}

/// How executions are counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    /// Each class once.
    Exactly,
    /// In another way.
    Otherwise,
}

pub(crate) struct Round {
    seed: u64,
    random: Random,
    programs: Programs,
    arguments: Vec<String>,
    slice: Option<&'static str>,
    bound: Option<u32>,
    counts: Counts,
    trouble: Trouble,
}

impl Round {
    pub(crate) fn new(seed: u64) -> Round {
        let mut random = Random::new(seed);
        let programs = Programs::new(&mut random);
        let mut words = vec!["--model", programs.model, "--keep-going", "--no-advice"];
        let mut counts = Counts::Exactly;
        let (mut graphs, mut states) = (true, false);
        match (programs.model, random.below(8)) {
            ("sc", n @ 0..4) if n < 2 || !programs.spins => {
                let engines = ["source-dpor", "optimal-dpor", "csdr", "bfs"];
                words.extend(["--algorithm", engines[n as usize]]);
                (graphs, states) = (false, n >= 2);
            }
            ("sc" | "ra", 4) => {
                words.extend(["--equivalence", "reads-from"]);
                (graphs, counts) = (false, Counts::Otherwise);
            }
            _ => {}
        }
        if states {
            counts = Counts::Otherwise;
        }
        let bound = (graphs && random.once_in(4)).then(|| random.below(4) as u32);
        let slices = ["1", "10", "5ms"];
        let mut slice = (graphs && random.once_in(2)).then(|| {
            words.extend(["--jobs", "2"]);
            slices[random.below(3) as usize]
        });
        let trouble = match random.below(8) {
            0 if !states => Trouble::Executions,
            1 => Trouble::Time,
            2 => Trouble::KilledWorker,
            3 if graphs => Trouble::KilledCommand,
            4 => Trouble::FullDisk,
            5 => Trouble::FullOutput,
            _ => Trouble::None,
        };
        if trouble == Trouble::KilledCommand {
            // These are saved after every slice.
            slice = slice.or(Some(slices[0]));
        }
        let mut arguments: Vec<String> = words.into_iter().map(str::to_owned).collect();
        if let Some(bound) = bound {
            arguments.extend(["--preemptions".to_owned(), bound.to_string()]);
        }
        if random.once_in(3) {
            arguments.extend(["--".to_owned(), "-O2".to_owned()]);
        }
        Round {
            seed,
            random,
            programs,
            arguments,
            slice,
            bound,
            counts,
            trouble,
        }
    }

    pub(crate) fn programs(&self) -> usize {
        self.programs.count
    }

    pub(crate) fn trouble(&self) -> &'static str {
        match self.trouble {
            Trouble::None => "none",
            Trouble::Executions => "execution limit",
            Trouble::Time => "time limit",
            Trouble::KilledWorker => "killed worker",
            Trouble::KilledCommand => "killed command",
            Trouble::FullDisk => "full disk",
            Trouble::FullOutput => "full output",
        }
    }

    /// The status of the command, or what is wrong with its verdict.
    pub(crate) fn run(&self) -> Result<i32, String> {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("soak-{}", self.seed));
        let end = fs::create_dir_all(&directory)
            .and_then(|()| fs::write(directory.join("program.c"), &self.programs.source))
            .and_then(|()| self.perform(&directory))
            .map_err(|error| error.to_string())
            .and_then(|output| self.compare(&output));
        match end {
            Ok(status) => {
                let _ = fs::remove_dir_all(&directory);
                Ok(status)
            }
            Err(why) => Err(format!(
                "{why}\n    {}selvedge verify {}/program.c {} ({})",
                self.slice
                    .map(|slice| format!("SELVEDGE_SLICE={slice} "))
                    .unwrap_or_default(),
                directory.display(),
                self.arguments.join(" "),
                self.trouble(),
            )),
        }
    }

    fn perform(&self, directory: &Path) -> io::Result<Output> {
        let mut random = self.random.clone();
        let full = || File::create("/dev/full").map(Stdio::from);
        let mut command = self.command(directory, &["verify", "program.c", "--format", "json"]);
        match self.trouble {
            Trouble::None => {}
            Trouble::Executions => {
                let limit = 1 + random.below(20);
                command.args(["--max-executions", &limit.to_string()]);
            }
            Trouble::Time => {
                let limit = 0.001 * (1 + random.below(200)) as f64;
                command.args(["--timeout", &limit.to_string()]);
            }
            Trouble::FullDisk => {
                command.args(["--trace-out", "/dev/full", "--report", "/dev/full"]);
            }
            Trouble::FullOutput => {
                command.stdout(full()?);
            }
            Trouble::KilledWorker => {
                let child = command.args(&self.arguments).spawn()?;
                for _ in 0..3 {
                    thread::sleep(Duration::from_millis(random.below(300)));
                    workers_of(child.id()).into_iter().take(1).for_each(end);
                }
                return child.wait_with_output();
            }
            Trouble::KilledCommand => {
                command.args(["--checkpoint", "search"]);
                return self.resumed(command.args(&self.arguments).spawn()?, directory, random);
            }
        }
        command.args(&self.arguments).output()
    }

    fn command(&self, directory: &Path, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command.args([HANGS, env!("CARGO_BIN_EXE_selvedge")]);
        command.args(words).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        command.stderr(Stdio::piped()).env("TMPDIR", directory);
        if let Some(slice) = self.slice {
            command.env("SELVEDGE_SLICE", slice);
        }
        command
    }

    /// Kills the command three times, after it has saved something; what it has saved is taken up.
    fn resumed(
        &self,
        mut child: Child,
        directory: &Path,
        mut random: Random,
    ) -> io::Result<Output> {
        let search: PathBuf = directory.join("search");
        let written = || fs::metadata(&search).and_then(|file| file.modified()).ok();
        for _ in 0..3 {
            let before = written();
            while written() <= before && child.try_wait()?.is_none() {
                thread::sleep(Duration::from_millis(1));
            }
            thread::sleep(Duration::from_millis(random.below(30)));
            if child.try_wait()?.is_some() {
                break;
            }
            KILLED.fetch_add(u64::from(search.exists()), Ordering::Relaxed);
            children_of(child.id()).into_iter().for_each(end);
            child.wait()?;
            let words: &[&str] = match search.exists() {
                true => &["resume", "search", "--format", "json"],
                false => &["verify", "program.c", "--format", "json"],
            };
            let mut command = self.command(directory, words);
            if words[0] == "verify" {
                command
                    .args(["--checkpoint", "search"])
                    .args(&self.arguments);
            }
            child = command.spawn()?;
        }
        child.wait_with_output()
    }

    fn compare(&self, output: &Output) -> Result<i32, String> {
        let programs = &self.programs;
        let told = String::from_utf8_lossy(&output.stderr);
        let Some(status) = output.status.code() else {
            return Err(format!("the command died: {} {told}", output.status));
        };
        let limited = matches!(
            self.trouble,
            Trouble::Executions | Trouble::Time | Trouble::KilledWorker
        );
        // Where every execution is cut off there is nothing to verify.
        let may_be_incomplete = limited || programs.executions == 0 || self.bound.is_some();
        let verdict = match (self.trouble, status) {
            (Trouble::FullDisk, 0) => {
                return Err("a file that cannot be written is not noticed".to_owned());
            }
            (Trouble::FullDisk, 2) if told.contains("/dev/full") => 0,
            _ => status,
        };
        match verdict {
            4 if self.trouble == Trouble::FullOutput => return Ok(status),
            4 if self.trouble == Trouble::KilledWorker => return Ok(status),
            0 | 1 if self.trouble == Trouble::FullOutput => {
                return Err("output that cannot be written is not noticed".to_owned());
            }
            0 if programs.bug && self.bound.is_none() => {
                return Err("verified, but some execution fails".to_owned());
            }
            1 if !programs.bug => return Err("a bug, but no execution fails".to_owned()),
            3 if !may_be_incomplete => return Err(format!("incomplete without a reason: {told}")),
            0 | 1 | 3 => {}
            _ => return Err(format!("status {status}: {told}")),
        }
        let report: Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("status {status}, and no JSON: {error}"))?;
        let executions = report["executions"].as_u64().unwrap_or(u64::MAX);
        let exact = self.counts == Counts::Exactly && self.bound.is_none() && !limited;
        let plausible = match exact {
            true => executions == programs.executions,
            false => self.counts != Counts::Exactly || executions <= programs.executions,
        };
        match plausible {
            true => Ok(status),
            false => Err(format!(
                "status {status} with {executions} executions, of {}",
                programs.executions
            )),
        }
    }
}

fn end(pid: u32) {
    let _ = kill(Pid::from_raw(pid as i32), Signal::SIGKILL);
}

/// The processes that this one started.
fn children_of(parent: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let children = children.unwrap_or_default();
    let numbers = children.split_whitespace();
    numbers.filter_map(|number| number.parse().ok()).collect()
}

/// The workers of the command that `timeout` with this number started.
fn workers_of(timeout: u32) -> Vec<u32> {
    let started = children_of(timeout).into_iter().flat_map(children_of);
    let is_worker = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|&byte| byte == 0).nth(1) == Some(b"worker")
    };
    started.filter(is_worker).collect()
}
