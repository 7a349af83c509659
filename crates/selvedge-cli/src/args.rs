//! The command line. Every option is defined here and nowhere else; help comes from it.

mod irs;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::compile::Program;
pub(crate) use irs::{Irs, IrsBuild, IrsRun, IrsStat, IrsVerify, OnDivergence};

const EXIT_STATUS: &str = "\
Exit status:
  0  verified: no execution fails
  1  a bug was found
  2  the request was wrong (usage, no such file, compile error, a program that cannot be checked)
  3  incomplete: a limit was reached before the search ended
  4  an internal error";

const VERIFY_EXAMPLES: &str = "\
Examples:
  selvedge verify queue.c                      every interleaving of one file
  selvedge verify main.c queue.c -- -O2 -DN=3  several files, with flags for the compiler
  selvedge verify queue.cpp --cc clang++       with another compiler
  selvedge verify old.c --plain sc             plain variables as if they were atomic
  selvedge verify loop.c --unroll 10           cut loops that have no bound of their own
  selvedge verify server.c --algorithm csdr    every state of a program that never ends
  selvedge verify server.c --ltl 'G (request -> F granted)' --fair
  selvedge verify bug.c --trace-out bug.json   keep the failing schedule,
  selvedge replay bug.json                     and run it again";

const COMPARE_EXAMPLES: &str = "\
Examples:
  selvedge compare queue.c                                 what each complete algorithm costs
  selvedge compare queue.c --preemptions 2 --timeout 60    bounded ones beside unbounded ones
  selvedge compare queue.c --algorithms trust,source-dpor  these two
  selvedge compare bug.c --keep-going                      the whole search, not up to the first bug

Exit status:
  0  an algorithm that leaves nothing out explored everything: no execution fails
  1  a bug was found, by at least one of them
  2  the request was wrong
  3  no bug was found, and no algorithm that leaves nothing out came to its end
  4  an internal error; also if the algorithms contradict each other";

const REPLAY_EXAMPLES: &str = "\
Examples:
  selvedge replay bug.json                             the failing run, with the program's output
  gdb --args selvedge replay --in-process bug.json     the same under a debugger";

/// A model checker for concurrent C and C++.
///
/// Runs a program under every thread schedule that matters, natively, and either shows that none
/// of them fails or hands back one that does, with as few context switches as possible.
#[derive(Debug, Parser)]
#[command(name = "selvedge", version, after_help = EXIT_STATUS, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Check a program under every thread schedule that matters
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify(Box<Verify>),
    /// Run several algorithms on one program and tell what each of them costs
    // Most of them are sequentially consistent only, so that is where they are compared.
    #[command(
        after_help = COMPARE_EXAMPLES,
        mut_arg("model", |arg| arg.help("Memory model [default: sc]")),
        mut_arg("algorithm", |arg| arg.hide(true)),
        mut_arg("equivalence", |arg| arg.hide(true)),
        mut_arg("trace_out", |arg| arg.hide(true)),
        mut_arg("no_advice", |arg| arg.hide(true)),
        mut_arg("delays", |arg| arg.hide(true)),
        mut_arg("switches", |arg| arg.hide(true)),
        mut_arg("lossless", |arg| arg.hide(true)),
        mut_arg("ltl", |arg| arg.hide(true)),
        mut_arg("property", |arg| arg.hide(true)),
        mut_arg("fair", |arg| arg.hide(true)),
        mut_arg("timeout", |arg| arg.help("Stop each algorithm after so many seconds")),
        mut_arg("max_executions", |arg| arg.help("Stop each algorithm after N executions")),
        mut_arg("preemptions", |arg| {
            arg.help("Only executions with at most K preemptions, for the algorithms that take a bound")
        })
    )]
    Compare(Box<Compare>),
    /// Run the failing schedule of a trace file again
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Replay),
    /// Run verified schedules only, and more of them as the proof goes on
    #[command(subcommand)]
    Irs(Irs),
    /// Tell what a search of a program costs, and what the program costs without it
    #[command(hide = true)]
    Measure(Box<Verify>),
    /// Tell which final states a litmus test has
    Litmus(Litmus),
    /// Runs the program under test on behalf of the other subcommands.
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The algorithms, with commas between them; `all` for each one that can be asked for [default: those
    /// that leave nothing out]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Search"
    )]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) verify: Verify,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) sources: Sources,

    #[command(flatten, next_help_heading = "Search")]
    pub(crate) search: Search,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: Machine,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Human, help_heading = "Output")]
    pub(crate) format: Format,

    /// Write the failing schedule to FILE, for `selvedge replay`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace_out: Option<PathBuf>,
}

/// What is compiled, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// C and C++ source files of the program
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Flags for the compiler; they win over those of Selvedge (`-g -O0`)
    #[arg(value_name = "COMPILER-FLAGS", last = true)]
    pub(crate) flags: Vec<String>,

    /// Compiler to use [default: $CC or $CXX, then cc, gcc, clang or c++, g++, clang++]
    #[arg(long, value_name = "COMPILER", help_heading = "Program under test")]
    pub(crate) cc: Option<String>,
}

impl Sources {
    /// The program that is asked about.
    pub(crate) fn program(&self) -> Program {
        Program {
            directory: None,
            files: self.files.clone(),
            flags: self.flags.clone(),
            compiler: self.cc.clone(),
            expressions: Vec::new(),
        }
    }

    /// What to end a command line with to ask about the same program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let compiler = self.cc.iter().flat_map(|cc| ["--cc", cc]);
        let dashes = (!self.flags.is_empty()).then_some("--");
        let flags = dashes
            .into_iter()
            .chain(self.flags.iter().map(String::as_str));
        let files = self.files.iter().map(|file| file.as_os_str());
        files
            .chain(compiler.chain(flags).map(OsStr::new))
            .map(OsStr::to_owned)
            .collect()
    }
}

/// What is searched, and how far.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Search {
    /// Memory model [default: rc11, or sc where the other options need it]
    #[arg(long, value_enum)]
    pub(crate) model: Option<Model>,

    /// Which executions count as the same
    #[arg(long, value_enum, default_value_t = Equivalence::Mazurkiewicz)]
    pub(crate) equivalence: Equivalence,

    /// Explorer [default: the best one for model and bound]
    #[arg(long, value_name = "NAME")]
    pub(crate) algorithm: Option<String>,

    /// Only executions with at most K preemptions
    #[arg(long, value_name = "K", conflicts_with = "iterative")]
    pub(crate) preemptions: Option<u32>,

    /// K = 0, 1, 2, … preemptions until complete or out of budget
    #[arg(long)]
    pub(crate) iterative: bool,

    /// Only executions with at most K delays of a round-robin scheduler
    #[arg(long, value_name = "K", conflicts_with_all = ["preemptions", "iterative", "algorithm"])]
    pub(crate) delays: Option<u32>,

    /// Only executions with at most K context switches of any sort
    #[arg(long, value_name = "K", conflicts_with_all = ["preemptions", "iterative", "delays"])]
    pub(crate) switches: Option<u32>,

    /// Tell states apart by comparing all of them, not by fingerprints (csdr, csdr-exact, bfs, dfs)
    #[arg(long)]
    pub(crate) lossless: bool,

    /// Check that every execution, also one that never ends, satisfies a formula of temporal logic
    #[arg(
        long,
        value_name = "FORMULA",
        conflicts_with = "algorithm",
        help_heading = "Properties"
    )]
    pub(crate) ltl: Option<String>,

    /// Check a property of executions that never end
    #[arg(long, value_enum, conflicts_with_all = ["ltl", "algorithm"], help_heading = "Properties")]
    pub(crate) property: Option<ReadyMade>,

    /// Only executions in which every thread that can go on goes on at some time (weak fairness)
    #[arg(long, help_heading = "Properties")]
    pub(crate) fair: bool,

    /// Runs of a random search (--algorithm random, pct or pos) [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: Option<u64>,

    /// Where the random numbers of a random search start [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// How many steps must come in a certain order for the bugs that pct looks for [default: 3]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) depth: Option<u32>,

    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_executions: Option<u64>,

    /// Stop after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Worker processes [default: one per processor for csdr, csdr-exact and bfs, else one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) jobs: Option<u32>,

    /// Do not look for orders and fences that would remove a bug of weak memory
    #[arg(long)]
    pub(crate) no_advice: bool,

    /// Explore everything and report every distinct bug, not just the first
    #[arg(long)]
    pub(crate) keep_going: bool,
}

impl Machine {
    /// The options that say the same.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = vec![format!("--plain={}", name_of(self.plain))];
        options.extend(self.unroll.map(|rounds| format!("--unroll={rounds}")));
        let switches = [
            (self.spurious_wakeups, "--spurious-wakeups"),
            (self.leaks, "--leaks"),
        ];
        options.extend(
            switches
                .iter()
                .filter(|(on, _)| *on)
                .map(|(_, name)| (*name).to_owned()),
        );
        options.extend([
            format!("--max-threads={}", self.max_threads),
            format!("--stack-size={}", self.stack_size),
            format!("--heap-limit={}", self.heap_limit),
            format!("--watchdog={}", self.watchdog.as_secs_f64()),
        ]);
        options.extend(
            self.memory_limit
                .map(|bytes| format!("--memory-limit={bytes}")),
        );
        options
    }
}

impl Search {
    /// The bound, whatever it is on.
    pub(crate) fn bound(&self) -> Option<u32> {
        self.preemptions.or(self.delays).or(self.switches)
    }
}

/// How the program under test behaves.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Plain accesses: check them for data races, or make each one a step of its own
    #[arg(long, value_enum, default_value_t = Plain::Race)]
    pub(crate) plain: Plain,

    /// Cut a loop after N rounds with a visible operation; the verdict then names the bound
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) unroll: Option<u32>,

    /// Condition variables may wake up without a signal
    #[arg(long)]
    pub(crate) spurious_wakeups: bool,

    /// Report memory that is still allocated at the end
    #[arg(long)]
    pub(crate) leaks: bool,

    /// Threads one execution may have
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_threads: u32,

    /// Stack of each thread, in bytes (K, M and G work)
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = bytes)]
    pub(crate) stack_size: usize,

    /// Memory one execution may allocate, in bytes (K, M and G work)
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = bytes)]
    pub(crate) heap_limit: usize,

    /// Memory the search may take in all, in bytes (K, M and G work); half of the machine's if not given
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[serde(default)]
    pub(crate) memory_limit: Option<usize>,

    /// Time a thread may run without a visible operation before that counts as an endless loop
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) watchdog: Duration,
}

#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// Trace written by `selvedge verify --trace-out`
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    /// Run the program inside this process, so that a debugger started on it sees the program
    #[arg(long)]
    pub(crate) in_process: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
pub(crate) struct Litmus {
    /// Litmus tests in herd's C syntax
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Memory model
    #[arg(long, value_enum, default_value_t = Model::Rc11)]
    pub(crate) model: Model,
}

#[derive(Args, Debug)]
pub(crate) struct Worker {
    /// Set once the process has been prepared and executed anew.
    #[arg(long)]
    pub(crate) prepared: bool,

    /// The process that the worker works for.
    #[arg(long)]
    pub(crate) parent: i32,
}

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Model {
    /// Sequential consistency
    Sc,
    /// Total store order
    Tso,
    /// Release-acquire
    Ra,
    /// The repaired C/C++11 model
    Rc11,
}

/// Which executions count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Equivalence {
    /// Same program order, reads-from and coherence
    Mazurkiewicz,
    /// Same program order and reads-from
    ReadsFrom,
}

/// What a plain access is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Plain {
    /// No step of its own; two that conflict and are not ordered are a data race, which is a bug
    Race,
    /// A step like an atomic access; no data races
    Sc,
}

/// A property that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReadyMade {
    /// Somebody passes a progress mark again and again (selvedge_progress)
    NonProgress,
    /// Every thread gets on again and again
    Starvation,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Human,
    /// One JSON object on standard output
    Json,
}

/// The name of an option's value as the user writes it.
pub(crate) fn name_of(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map(|v| v.get_name().to_owned())
        .unwrap_or_default()
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text
        .parse()
        .map_err(|_| "not a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("must be more than zero and not absurdly long".to_owned()),
    }
}

fn bytes(text: &str) -> Result<usize, String> {
    let (digits, shift) = match text.chars().last().map(|c| c.to_ascii_uppercase()) {
        Some('K') => (&text[..text.len() - 1], 10),
        Some('M') => (&text[..text.len() - 1], 20),
        Some('G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number: usize = digits
        .parse()
        .map_err(|_| "not a number of bytes".to_owned())?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("must be more than zero".to_owned()),
        Some(bytes) if bytes <= 1 << 46 => Ok(bytes),
        _ => Err("more than a process can have".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_take_a_suffix() {
        assert_eq!(bytes("256K"), Ok(256 << 10));
        assert_eq!(bytes("1g"), Ok(1 << 30));
        assert_eq!(bytes("4096"), Ok(4096));
        for wrong in ["", "K", "0", "-1", "99999999999999G", "1T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn seconds_are_positive() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "-1", "NaN", "1e300", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn compiler_flags_follow_the_dashes() {
        let cli = Cli::parse_from(["selvedge", "verify", "a.c", "b.c", "--", "-O2", "-DX=1"]);
        let Command::Verify(verify) = cli.command else {
            panic!("not verify")
        };
        assert_eq!(verify.sources.files.len(), 2);
        assert_eq!(verify.sources.flags, ["-O2", "-DX=1"]);
    }
}
