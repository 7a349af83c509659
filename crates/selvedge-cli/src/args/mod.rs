//! The command line. Every option is defined here and in the files below, and nowhere else; help comes
//! from it.

#[cfg(feature = "cluster")]
mod cluster;
mod irs;
mod program;
mod search;
mod values;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::compile::{Program, plainly};
use crate::input;
use crate::problem::Problem;
use crate::project;
use crate::verify::cases::{self, Case};
#[cfg(feature = "cluster")]
pub(crate) use cluster::{Attach, Broker, Cluster, Runs, Serve};
pub(crate) use irs::{Irs, IrsBuild, IrsRun, IrsStat, IrsVerify, OnDivergence};
pub(crate) use program::ProgramOptions;
pub(crate) use search::SearchOptions;
pub(crate) use values::{Equivalence, Format, Model, Plain, ReadyMade, TextOrJson, Words, name_of};

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

const RESUME_EXAMPLES: &str = "\
Examples:
  selvedge verify queue.c --checkpoint queue.search --timeout 3600
  selvedge resume queue.search                 go on to the end
  selvedge resume queue.search --timeout 3600  go on for another hour";

const ESTIMATE_EXAMPLES: &str = "\
Examples:
  selvedge estimate queue.c                    two seconds of random descents
  selvedge estimate queue.c --preemptions 2    the same for a bounded search

Exit status: 0, or 2 if the program cannot be checked";

/// The options of a search that `estimate` has.
const ESTIMATED: [&str; 22] = [
    "files",
    "flags",
    "cc",
    "build_dir",
    "target",
    "stub",
    "model",
    "preemptions",
    "timeout",
    "plain",
    "unroll",
    "stack_size",
    "heap_limit",
    "max_threads",
    "memory_limit",
    "spurious_wakeups",
    "spurious_failures",
    "reuse_memory",
    "no_confinement",
    "args",
    "env",
    "format",
];

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
    /// Run several algorithms on one program and tell what each of them costs
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
        mut_arg("timeout", |arg| arg.help("Stop each algorithm after so many seconds")),
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
    /// Compile and link like the C compiler, and note in the objects what `verify` needs
    #[command(disable_help_flag = true)]
    Cc(Compiler),
    /// The same for C++
    #[command(name = "c++", disable_help_flag = true)]
    Cxx(Compiler),
    /// Estimate how many executions a search of a program would have, and what makes them many
    #[command(
        after_help = ESTIMATE_EXAMPLES,
        mut_args(|arg| match ESTIMATED.contains(&arg.get_id().as_str()) {
            true => arg,
            false => arg.hide(true),
        }),
        mut_arg("timeout", |arg| arg.help("Sample for so many seconds [default: 2]"))
    )]
    Estimate(Box<Estimate>),
    /// The linker that `cargo selvedge check` uses; without arguments, the flags for rustc
    #[command(name = "link-rust", hide = true, disable_help_flag = true)]
    LinkRust(Compiler),
    /// Continue a search that was stopped
    #[command(after_help = RESUME_EXAMPLES)]
    Resume(Box<Resume>),
    /// Explore searches of other machines, which `verify --cluster URL` begins
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
    /// Run verified schedules only, and more of them as the proof goes on
    #[command(subcommand)]
    Irs(Irs),
    /// Tell what a search of a program costs, and what the program costs without it
    #[command(hide = true)]
    Measure(Box<Verify>),
    /// Tell which final states a litmus test has
    Litmus(Litmus),
    /// Explain a kind of bug, with an example and the usual fix
    Explain(Explain),
    /// Walk through the failing schedule of a trace in gdb
    Debug(Debug),
    /// Write a first harness for a C header or a Rust crate
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
    /// The algorithms, with commas between them; `all` for each one that can be asked for [default:
    /// those that leave nothing out]
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

#[derive(Args, Debug)]
pub(crate) struct Estimate {
    #[command(flatten)]
    pub(crate) sources: Sources,

    #[command(flatten, next_help_heading = "Search")]
    pub(crate) search: SearchOptions,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: ProgramOptions,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human, help_heading = "Output")]
    pub(crate) format: TextOrJson,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct Verify {
    #[command(flatten)]
    pub(crate) sources: Sources,

    #[command(flatten, next_help_heading = "Search")]
    pub(crate) search: SearchOptions,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: ProgramOptions,

    /// Refuse code that cannot be checked even if no execution reaches it
    #[arg(long, help_heading = "Program under test")]
    pub(crate) strict: bool,

    /// Print every place that cannot be checked, and do not search
    #[arg(long, help_heading = "Output")]
    pub(crate) list_unsupported: bool,

    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Human, help_heading = "Output")]
    pub(crate) format: Format,

    /// Write the failing schedule to FILE, for `selvedge replay`
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) trace_out: Option<PathBuf>,

    /// Keep the search in FILE, every few seconds and when it is stopped, for `selvedge resume`
    #[arg(long, value_name = "FILE", help_heading = "Search")]
    pub(crate) checkpoint: Option<PathBuf>,

    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub(crate) cluster: Cluster,

    /// Write a page to FILE that shows the schedule, the execution graph and the search
    #[arg(long, value_name = "FILE.html", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,

    /// Explain the verdict in a few paragraphs
    #[arg(long, help_heading = "Output")]
    pub(crate) explain: bool,

    /// Write the bug to FILE as a violation witness in SV-COMP's YAML format
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) witness: Option<PathBuf>,

    /// Check each test case of GoogleTest that matches PATTERN, as a program of its own
    #[arg(
        long = "gtest_filter",
        value_name = "PATTERN",
        conflicts_with = "test_case",
        help_heading = "Program under test"
    )]
    pub(crate) gtest_filter: Option<String>,

    /// Check each test case of Catch2 or doctest that matches PATTERN, as a program of its own
    #[arg(long, value_name = "PATTERN", help_heading = "Program under test")]
    pub(crate) test_case: Option<String>,

    /// The test cases, if there are several.
    #[arg(skip)]
    pub(crate) cases: Vec<Case>,
}

impl Verify {
    /// The program that is asked about.
    pub(crate) fn program(&self) -> Result<Program, Problem> {
        Ok(Program {
            marks: !self.machine.unroll.is_empty(),
            spurious_failures: self.machine.spurious_failures,
            strict: self.strict,
            environment: self.is_local(),
            ..self.sources.program()?
        })
    }

    /// Finds the test cases. One alone is a program like any other.
    fn settle_cases(&mut self) -> Result<(), Problem> {
        let Some(executable) = self.sources.executable() else {
            return Err(
                Problem::request("test cases are those of an executable").help(
                    "build it with CXX='selvedge c++', and then: selvedge verify ./EXECUTABLE …",
                ),
            );
        };
        if !self.sources.flags.is_empty() || self.machine.args.is_some() {
            return Err(Problem::request(
                "a test case is run with the arguments that select it, and no others",
            ));
        }
        let (gtest_filter, test_case) = (self.gtest_filter.as_deref(), self.test_case.as_deref());
        let cases = cases::list(executable, gtest_filter, test_case)?;
        match &cases[..] {
            [case] => self.machine.select(case),
            _ => self.cases = cases,
        }
        Ok(())
    }

    /// Whether this machine alone searches: the files of others may be different.
    fn is_local(&self) -> bool {
        #[cfg(feature = "cluster")]
        return self.cluster.cluster.is_none();
        #[cfg(not(feature = "cluster"))]
        true
    }

    /// What follows the dashes after an executable are its arguments. The file with its input is
    /// found from any directory.
    pub(crate) fn settle_arguments(&mut self) -> Result<(), Problem> {
        if let Some(stdin) = &mut self.machine.stdin {
            let opened = input::open(stdin).and_then(|_| stdin.canonicalize());
            *stdin = opened.map_err(|error| {
                Problem::request(format!("{}: {}", stdin.display(), plainly(&error)))
                    .help("--stdin names a file with the program's standard input")
            })?;
        }
        if self.gtest_filter.is_some() || self.test_case.is_some() {
            self.settle_cases()?;
        }
        let built = self.sources.build_dir.is_some() || self.sources.executable().is_some();
        if !built || self.sources.flags.is_empty() {
            return Ok(());
        }
        let arguments = Words(std::mem::take(&mut self.sources.flags));
        match self.machine.args.replace(arguments) {
            None => Ok(()),
            Some(_) => Err(Problem::request(
                "arguments are given twice: by --args, and behind the dashes",
            )),
        }
    }
}

/// What is compiled, and how.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// C and C++ source files of the program, or an executable that was built with `selvedge cc`
    #[arg(value_name = "FILE", required_unless_present = "build_dir")]
    pub(crate) files: Vec<PathBuf>,

    /// Flags for the compiler; they win over those of Selvedge (`-g -O0`). After an executable, its
    /// arguments
    #[arg(value_name = "COMPILER-FLAGS", last = true)]
    pub(crate) flags: Vec<String>,

    /// Compiler to use [default: $CC or $CXX, then cc, gcc, clang or c++, g++, clang++]
    #[arg(long, value_name = "COMPILER", help_heading = "Program under test")]
    pub(crate) cc: Option<String>,

    /// Check a program of the build in DIR, which has a compile_commands.json
    #[arg(
        long,
        value_name = "DIR",
        help_heading = "Program under test",
        conflicts_with = "files"
    )]
    pub(crate) build_dir: Option<PathBuf>,

    /// Which program of that build
    #[arg(
        long,
        value_name = "NAME",
        help_heading = "Program under test",
        requires = "build_dir"
    )]
    pub(crate) target: Option<String>,

    /// A source file with functions that take the place of those that are not modelled
    #[arg(long, value_name = "FILE", help_heading = "Program under test")]
    pub(crate) stub: Vec<PathBuf>,
}

impl Sources {
    /// The executable that the program is given as.
    fn executable(&self) -> Option<&Path> {
        match &self.files[..] {
            [file] if project::is_executable(file) => Some(file),
            _ => None,
        }
    }

    /// The program that is asked about.
    pub(crate) fn program(&self) -> Result<Program, Problem> {
        let program = |files: &[PathBuf]| Program {
            directory: None,
            files: files.iter().chain(&self.stub).cloned().collect(),
            flags: self.flags.clone(),
            recorded: Vec::new(),
            compiler: self.cc.clone(),
            expressions: Vec::new(),
            marks: false,
            spurious_failures: false,
            environment: false,
            strict: true,
        };
        let target = match (&self.build_dir, self.executable()) {
            (Some(directory), _) => project::of_build(directory, self.target.as_deref())?,
            (None, Some(executable)) => project::of_executable(executable)?,
            (None, None) => return Ok(program(&self.files)),
        };
        Ok(target.with(program(&[])))
    }

    /// What reports call the program.
    pub(crate) fn names(&self) -> Vec<String> {
        let files = self.files.iter().map(|file| file.display().to_string());
        files.chain(self.target.clone()).collect()
    }

    /// What to end a command line with to ask about the same program.
    pub(crate) fn arguments(&self) -> Vec<OsString> {
        let compiler = self.cc.iter().flat_map(|cc| ["--cc", cc]);
        let dashes = (!self.flags.is_empty()).then_some("--");
        let flags = dashes
            .into_iter()
            .chain(self.flags.iter().map(String::as_str));
        let files = self.files.iter().map(|file| file.as_os_str());
        let directory = self.build_dir.iter();
        let directory = directory.flat_map(|path| [OsStr::new("--build-dir"), path.as_os_str()]);
        let target = self.target.iter();
        let target = target.flat_map(|name| [OsStr::new("--target"), OsStr::new(name)]);
        let stubs = self.stub.iter();
        let stubs = stubs.flat_map(|stub| [OsStr::new("--stub"), stub.as_os_str()]);
        files
            .chain(directory)
            .chain(target)
            .chain(stubs)
            .chain(compiler.chain(flags).map(OsStr::new))
            .map(OsStr::to_owned)
            .collect()
    }
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
    /// What the compiler is called with [SELVEDGE_CC and SELVEDGE_CXX name the compilers]
    #[arg(
        value_name = "ARGUMENTS",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Args, Debug)]
pub(crate) struct Resume {
    /// File written by `selvedge verify --checkpoint`; the search is kept there further on
    #[arg(value_name = "FILE")]
    pub(crate) checkpoint: PathBuf,

    /// Worker processes [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Stop after so many more seconds
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Stop after N more executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_executions: Option<u64>,

    #[command(flatten)]
    pub(crate) compiler: FileCompiler,

    /// How to print the result
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

    /// How to print the result
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
