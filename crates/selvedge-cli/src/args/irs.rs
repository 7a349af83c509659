//! The command line of `selvedge irs`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Arg, Args, Subcommand, ValueEnum};

use super::values::seconds;
use super::{ProgramOptions, Sources, TextOrJson};

const IRS_VERIFY_EXAMPLES: &str = "\
Examples:
  selvedge irs verify queue.c                     prove all schedules, or as many as time allows
  selvedge irs verify queue.c --timeout 60        stop after a minute; the same command continues
  selvedge irs verify old.c --plain sc            order plain accesses too
  selvedge irs stat queue.irs --svg queue.svg     the remaining constraints, and a picture of them
  selvedge irs build queue.c -o queue             an executable that runs proven schedules only

Exit status:
  0  every schedule is proven: nothing has to be enforced
  1  some schedules fail: the remaining constraints exclude them
  2  the request was wrong, or every schedule that was found fails
  3  incomplete: a limit was reached; the remaining constraints admit proven schedules only
  4  an internal error";

const IRS_BUILD_EXAMPLES: &str = "\
Examples:
  selvedge irs verify prog.c -o prog.irs        prove schedules first,
  selvedge irs build prog.c -o prog             and build an executable that keeps to them
  ./prog                                        keeps to the present contents of prog.irs
  SELVEDGE_IRS=other.irs ./prog                 reads another prefix file
  selvedge irs build prog.c -o prog --tune      try other prefixes, and keep the fastest";

const IRS_RUN_EXAMPLES: &str = "\
Examples:
  selvedge irs run prog.c                       run, and continue the proof meanwhile
  selvedge irs run prog.c --flag=-O2            compile with optimisation
  SELVEDGE_INPUT=2,0 selvedge irs run prog.c    run with these choices of main as its input

The exit status is that of the program.";

/// Iteratively relaxed scheduling.
#[derive(Debug, Subcommand)]
pub(crate) enum Irs {
    /// Prove schedules of a program, and write the constraints that exclude all others
    #[command(after_help = IRS_VERIFY_EXAMPLES, mut_args(without_inputs))]
    Verify(Box<IrsVerify>),
    /// Show the constraints of a prefix file, and the progress of its proof
    Stat(IrsStat),
    /// Build an executable that keeps to the schedules of a prefix file
    #[command(after_help = IRS_BUILD_EXAMPLES)]
    Build(IrsBuild),
    /// Run a program under the schedules proven so far, while the proof continues
    #[command(after_help = IRS_RUN_EXAMPLES, mut_args(without_inputs))]
    Run(Box<IrsRun>),
}

/// Hides options from the help that are refused: whole executions without such inputs are proven.
fn without_inputs(arg: Arg) -> Arg {
    match ["unroll", "args", "env", "stdin"].contains(&arg.get_id().as_str()) {
        true => arg.hide(true),
        false => arg,
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct IrsVerify {
    #[command(flatten)]
    pub(crate) sources: Sources,

    /// The prefix file [default: the first FILE with .irs in place of its ending]
    #[arg(short, long, value_name = "PREFIX")]
    pub(crate) output: Option<PathBuf>,

    /// Start over, even if the prefix file contains part of the proof
    #[arg(long)]
    pub(crate) anew: bool,

    /// The order of the threads in the first schedule [default: the one in which the fewest threads wait]
    #[arg(long, value_enum)]
    pub(crate) order: Option<Order>,

    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_executions: Option<u64>,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Worker processes [default: one]
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "max_executions",
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(crate) jobs: Option<u32>,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: ProgramOptions,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human, help_heading = "Output")]
    pub(crate) format: TextOrJson,
}

impl IrsVerify {
    /// The path of the prefix file.
    pub(crate) fn prefix(&self) -> PathBuf {
        let first = || self.sources.files[0].with_extension("irs");
        self.output.clone().unwrap_or_else(first)
    }
}

#[derive(Args, Clone, Debug)]
pub(crate) struct IrsStat {
    /// A prefix file written by `selvedge irs verify`
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: PathBuf,

    /// Draw the events of each thread and their waits
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,

    /// The input to draw, in the form of SELVEDGE_INPUT [default: the first one]
    #[arg(long, value_name = "VALUES", value_delimiter = ',')]
    pub(crate) input: Vec<u64>,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human)]
    pub(crate) format: TextOrJson,

    /// Write the result to FILE as an HTML page
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct IrsBuild {
    // Files, flags and compiler are those of `irs verify`.
    #[command(flatten)]
    pub(crate) sources: Sources,

    /// The executable; at run time it reads the prefix file PROGRAM.irs
    #[arg(short, long, value_name = "PROGRAM")]
    pub(crate) output: PathBuf,

    /// The prefix file, which decides what accesses need no callback [default: PROGRAM.irs, if there is one]
    #[arg(long, value_name = "FILE")]
    pub(crate) prefix: Option<PathBuf>,

    /// Reaction when the program leaves the verified executions
    #[arg(long, value_enum, default_value_t = OnDivergence::Abort)]
    pub(crate) on_divergence: OnDivergence,

    /// Prove as much with other initial traces, run the program under each of the prefixes, and
    /// keep the fastest
    #[arg(long)]
    pub(crate) tune: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct IrsRun {
    /// C and C++ source files of the program
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Arguments for the program: refused, because schedules are proven without arguments
    #[arg(value_name = "ARGUMENTS", last = true)]
    pub(crate) arguments: Vec<OsString>,

    /// The prefix file, which the next run continues [default: the first FILE with .irs in place of its
    /// ending]
    #[arg(long, value_name = "PREFIX")]
    pub(crate) prefix: Option<PathBuf>,

    /// Reaction when the program leaves the verified executions
    #[arg(long, value_enum, default_value_t = OnDivergence::Abort)]
    pub(crate) on_divergence: OnDivergence,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: ProgramOptions,

    /// A flag for the compiler; repeat the option for more flags
    #[arg(
        long = "flag",
        value_name = "FLAG",
        allow_hyphen_values = true,
        help_heading = "Program under test"
    )]
    pub(crate) flags: Vec<String>,

    /// Compiler to use [default: $CC or $CXX, then cc, gcc, clang or c++, g++, clang++]
    #[arg(long, value_name = "COMPILER", help_heading = "Program under test")]
    pub(crate) cc: Option<String>,
}

impl IrsRun {
    /// The files to compile, and the way.
    pub(crate) fn sources(&self) -> Sources {
        Sources {
            stub: Vec::new(),
            build_dir: None,
            target: None,
            files: self.files.clone(),
            flags: self.flags.clone(),
            cc: self.cc.clone(),
        }
    }
}

/// The order of threads in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Order {
    /// One after the other
    Ascending,
    /// One after the other, the last one first
    Descending,
    /// In turns
    Turns,
}

impl From<Order> for selvedge_core::irs::Order {
    fn from(order: Order) -> selvedge_core::irs::Order {
        match order {
            Order::Ascending => selvedge_core::irs::Order::Ascending,
            Order::Descending => selvedge_core::irs::Order::Descending,
            Order::Turns => selvedge_core::irs::Order::Turns,
        }
    }
}

/// The reaction of a program that leaves the verified executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnDivergence {
    /// Stop the program
    Abort,
    /// Print a message and continue without constraints
    Warn,
    /// Print a message and continue with one thread at a time, in the order of creation
    Serial,
}

impl From<OnDivergence> for selvedge_enforce::Policy {
    fn from(what: OnDivergence) -> selvedge_enforce::Policy {
        match what {
            OnDivergence::Abort => selvedge_enforce::Policy::Abort,
            OnDivergence::Warn => selvedge_enforce::Policy::Warn,
            OnDivergence::Serial => selvedge_enforce::Policy::Serial,
        }
    }
}
