//! The command line. Every option is defined here and in the files below, and nowhere else; help comes
//! from it.

#[cfg(feature = "cluster")]
mod cluster;
mod estimate;
mod irs;
mod program;
mod search;
mod sources;
mod values;
mod verify;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

#[cfg(feature = "cluster")]
pub(crate) use cluster::{Attach, Broker, Cluster, Runs, Serve};
pub(crate) use estimate::Estimate;
use estimate::{ESTIMATE_EXAMPLES, ESTIMATED};
pub(crate) use irs::{Irs, IrsBuild, IrsRun, IrsStat, IrsVerify};
pub(crate) use program::{ProgramOptions, Shown};
pub(crate) use search::SearchOptions;
pub(crate) use sources::Sources;
pub(crate) use values::{
    Equivalence, Format, Model, Plain, ReadyMade, SystemHeaders, TextOrJson, Words, name_of,
};
use verify::VERIFY_EXAMPLES;
pub(crate) use verify::Verify;

const EXIT_STATUS: &str = "\
Exit status:
  0  verified: no execution fails
  1  a bug was found
  2  the request was wrong (usage, no such file, compile error, a program that cannot be checked)
  3  incomplete: a limit was reached before the search ended
  4  an internal error";

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

const RESUME_EXAMPLES: &str = "\
Examples:
  selvedge verify queue.c --checkpoint queue.search --timeout 3600
  selvedge resume queue.search                 go on to the end
  selvedge resume queue.search --timeout 3600  go on for another hour";

const REPLAY_EXAMPLES: &str = "\
Examples:
  selvedge replay bug.json                             the failing run, with the program's output
  selvedge debug bug.json                              the same, step by step, in gdb
  gdb --args selvedge replay --in-process bug.json     the same under a debugger of your own";

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
    /// Run several algorithms on one program and compare their cost
    // Most of them are sequentially consistent only, so that is where they are compared.
    #[command(
        after_help = COMPARE_EXAMPLES,
        mut_arg("model", |arg| arg.help("Memory model [default: sc]")),
        mut_arg("algorithm", |arg| arg.hide(true)),
        mut_arg("equivalence", |arg| arg.hide(true)),
        mut_arg("trace_out", |arg| arg.hide(true)),
        mut_arg("checkpoint", |arg| arg.hide(true)),
        mut_arg("witness", |arg| arg.hide(true)),
        mut_arg("explain", |arg| arg.hide(true)),
        mut_arg("no_advice", |arg| arg.hide(true)),
        mut_arg("delays", |arg| arg.hide(true)),
        mut_arg("switches", |arg| arg.hide(true)),
        mut_arg("lossless", |arg| arg.hide(true)),
        mut_arg("ltl", |arg| arg.hide(true)),
        mut_arg("property", |arg| arg.hide(true)),
        mut_arg("fair", |arg| arg.hide(true)),
        mut_arg("timeout", |arg| arg.help("Stop each algorithm after this many seconds")),
        mut_arg("max_executions", |arg| arg.help("Stop each algorithm after N executions")),
        mut_arg("preemptions", |arg| {
            arg.help("Only executions with at most K preemptions, for the algorithms that take a bound")
        })
    )]
    #[cfg_attr(feature = "cluster", command(
        mut_arg("cluster", |arg| arg.hide(true)),
        mut_arg("creds", |arg| arg.hide(true)),
        mut_arg("tls_ca", |arg| arg.hide(true)),
        mut_arg("tls_cert", |arg| arg.hide(true)),
        mut_arg("tls_key", |arg| arg.hide(true)),
        mut_arg("prefix", |arg| arg.hide(true)),
    ))]
    Compare(Box<Compare>),
    /// Compile and link like the C compiler, and record in the objects what `verify` needs
    #[command(disable_help_flag = true)]
    Cc(Compiler),
    /// The same for C++
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(Compiler),
    /// Estimate how many executions a search would explore, and which lines cause them
    #[command(
        after_help = ESTIMATE_EXAMPLES,
        mut_args(|arg| match ESTIMATED.contains(&arg.get_id().as_str()) {
            true => arg,
            false => arg.hide(true),
        }),
        mut_arg("timeout", |arg| arg.help("Sample for this many seconds [default: 2]"))
    )]
    Estimate(Box<Estimate>),
    /// The linker that `cargo selvedge check` uses; without arguments, the flags for rustc
    #[command(name = "link-rust", hide = true, disable_help_flag = true)]
    LinkRust(Compiler),
    /// Continue a search that was stopped
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Box<Resume>),
    /// Work on searches that `verify --cluster URL` starts on other machines
    #[cfg(feature = "cluster")]
    Serve(Serve),
    /// List the searches of a cluster
    #[cfg(feature = "cluster")]
    Runs(Runs),
    /// Follow a search of a cluster, and continue it if it was stopped
    #[cfg(feature = "cluster")]
    Attach(Attach),
    /// Run the failing schedule of a trace file again
    #[command(after_help = REPLAY_EXAMPLES)]
    Replay(Replay),
    /// Prove schedules, and run programs under proven schedules only
    #[command(subcommand)]
    Irs(Irs),
    /// Measure the cost of a search, and of the program without a search
    #[command(hide = true)]
    Measure(Box<Verify>),
    /// List the final states of a litmus test
    Litmus(Litmus),
    /// Explain a kind of bug, with an example and the usual fix
    Explain(Explain),
    /// Walk through the failing schedule of a trace in gdb
    Debug(Debug),
    /// Write a first harness for a header of C or C++, or for a Rust crate
    Init(Init),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write man pages to a directory
    Man {
        /// The directory
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Runs the program under test on behalf of the other subcommands.
    #[command(hide = true)]
    Worker(Worker),
}

#[derive(Args, Debug)]
pub(crate) struct Compare {
    /// The algorithms, separated by commas; `all` for every one [default: those that leave nothing
    /// out]
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = values::algorithm(Some("all")),
        help_heading = "Search"
    )]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) verify: Verify,
}

/// The compiler for a program that a file of Selvedge names.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct FileCompiler {
    /// Compiler to use [default: as for `verify`; the file does not choose the compiler]
    #[arg(long, value_name = "COMPILER")]
    pub(crate) cc: Option<String>,

    /// Use the compiler and the compiler flags that the file names, whatever they are
    #[arg(long, conflicts_with = "cc")]
    pub(crate) trust: bool,
}

impl FileCompiler {
    /// The options that say the same.
    pub(crate) fn options(&self) -> impl Iterator<Item = &str> {
        let compiler = self.cc.iter().flat_map(|cc| ["--cc", cc]);
        compiler.chain(self.trust.then_some("--trust"))
    }
}

#[derive(Args, Debug)]
pub(crate) struct Compiler {
    /// Arguments of the compiler [SELVEDGE_CC and SELVEDGE_CXX name the compilers]
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// File written by `selvedge verify --checkpoint`; it is kept up to date
    #[arg(value_name = "FILE")]
    pub(crate) checkpoint: PathBuf,

    /// Worker processes [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Stop after this many more seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Stop after N more executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_executions: Option<u64>,

    #[command(flatten)]
    pub(crate) compiler: FileCompiler,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,

    /// Write the failing schedule to FILE, for `selvedge replay`
    #[arg(long, value_name = "FILE")]
    pub(crate) trace_out: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// Trace written by `selvedge verify --trace-out`
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) compiler: FileCompiler,

    /// Let the program make any system call; for debuggers and profilers
    #[arg(long)]
    pub(crate) no_confinement: bool,

    /// Run the program inside this process, so that a debugger started on it sees the program
    #[arg(long)]
    pub(crate) in_process: bool,

    #[command(flatten)]
    pub(crate) shown: Shown,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human)]
    pub(crate) format: TextOrJson,

    /// Write the result to FILE as a page to look at
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Litmus {
    /// Litmus tests in herd's C syntax
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Memory model
    #[arg(long, value_parser = values::memory_model(), default_value_t = Model::Rc11)]
    pub(crate) model: Model,

    /// Write the result to FILE as a page to look at
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct Debug {
    /// Trace written by `selvedge verify --trace-out`
    #[arg(value_name = "TRACE")]
    pub(crate) trace: PathBuf,

    #[command(flatten)]
    pub(crate) compiler: FileCompiler,

    /// Start gdbserver at this address (such as :1234) instead of gdb
    #[arg(long, value_name = "ADDRESS", conflicts_with = "gdb")]
    pub(crate) server: Option<String>,

    /// Write the commands for gdb to this file, which the gdb of an editor can source
    #[arg(long, value_name = "FILE", requires = "server")]
    pub(crate) extension: Option<PathBuf>,

    /// Arguments for gdb
    #[arg(value_name = "GDB-ARGUMENTS", last = true)]
    pub(crate) gdb: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct Init {
    /// A C header, or the directory of a crate
    #[arg(value_name = "HEADER|CRATE")]
    pub(crate) subject: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The kind, as reports name it; all kinds are listed if there is none
    #[arg(value_name = "KIND")]
    pub(crate) kind: Option<String>,
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
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
