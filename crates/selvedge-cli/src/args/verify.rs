//! The options of `selvedge verify`, which other commands share.

use std::path::PathBuf;

use clap::Args;

#[cfg(feature = "cluster")]
use super::Cluster;
use super::Plain;
use super::{Format, ProgramOptions, SearchOptions, Sources, Words};
use crate::compile::{Program, foreign, plainly};
use crate::input;
use crate::problem::{Problem, note};
use crate::verify::cases::{self, Case};

pub(super) const VERIFY_EXAMPLES: &str = "\
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

    /// Format of the result
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

    /// Check each test case of Catch2, doctest or Rust that matches PATTERN, as a program of its own
    #[arg(long, value_name = "PATTERN", help_heading = "Program under test")]
    pub(crate) test_case: Option<String>,

    /// The test cases, if there are several.
    #[arg(skip)]
    pub(crate) cases: Vec<Case>,
}

impl Verify {
    /// The program that is asked about.
    pub(crate) fn program(&self) -> Result<Program, Problem> {
        let program = Program {
            marks: !self.machine.unroll.is_empty(),
            spurious_failures: self.machine.spurious_failures,
            strict: self.strict,
            environment: self.is_local(),
            ..self.sources.program()?
        };
        if self.machine.plain == Plain::Sc {
            foreign::refuse(&program, "--plain sc")?;
        }
        if self.machine.spurious_failures {
            foreign::refuse(&program, "--spurious-failures")?;
        }
        Ok(program)
    }

    /// Finds the test cases. One alone is a program like any other.
    fn settle_cases(&mut self) -> Result<(), Problem> {
        let Some(executable) = self.sources.with_cases() else {
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

    /// Makes the words after the dashes behind an executable its arguments, and the path of the
    /// file with its input absolute.
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
        } else if let Some(executable) = self.sources.executable()
            && let Some(option) = cases::option_for_all(executable)
        {
            note(&format!(
                "{} runs test cases, so a status other than zero is a bug; {option} checks each case as a program of its \
                 own",
                executable.display()
            ));
            self.machine.check_status = true;
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
