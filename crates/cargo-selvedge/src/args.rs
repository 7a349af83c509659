//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// As cargo calls it: `cargo-selvedge selvedge test …`.
#[derive(Debug, Parser)]
#[command(name = "cargo", bin_name = "cargo", styles = clap::builder::Styles::plain())]
pub(crate) enum Cargo {
    /// Check concurrent Rust code under every schedule that matters
    #[command(version)]
    Selvedge(Selvedge),
}

impl Cargo {
    pub(crate) fn command(self) -> Selvedge {
        let Cargo::Selvedge(selvedge) = self;
        selvedge
    }
}

/// The arguments that cargo hands over.
#[derive(Debug, Args)]
pub(crate) struct Selvedge {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a crate's loom tests, unmodified, with Selvedge in the place of loom
    Test(Test),
    /// Check a program or tests that are written against `std`, unmodified
    #[command(after_help = CHECK_HELP)]
    Check(Check),
    /// Run one execution of a test again, with its panics shown as they happen
    Replay(Replay),
}

const CHECK_HELP: &str = "\
Examples:
  cargo selvedge check --bin server
  cargo selvedge check --example queue -- --preemptions 2 --report report.html
  cargo selvedge check --test queue
  cargo selvedge check --lib channel::tests

What follows the dashes goes to `selvedge verify`, whose help lists it.";

/// The program or tests to check, and the options for that.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The program to check, if the package has several
    #[arg(long, value_name = "NAME", conflicts_with = "example")]
    pub(crate) bin: Option<String>,
    /// The example to check
    #[arg(long, value_name = "NAME")]
    pub(crate) example: Option<String>,
    /// Check each test of tests/NAME.rs, as a program of its own
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bin", "example"])]
    pub(crate) test: Option<String>,
    /// Check each test in the library, as a program of its own
    #[arg(long, conflicts_with_all = ["bin", "example", "test"])]
    pub(crate) lib: bool,
    /// Check only tests whose name contains one of these
    pub(crate) filters: Vec<String>,
    /// The package that it belongs to
    #[arg(long, short, value_name = "NAME")]
    pub(crate) package: Option<String>,
    /// Features to build it with
    #[arg(long, value_name = "NAMES")]
    pub(crate) features: Option<String>,
    /// The package's Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest_path: Option<PathBuf>,
    /// Options of `selvedge verify`
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
}

/// How tests are built.
#[derive(Debug, Args)]
pub(crate) struct Build {
    /// The cfg that switches the crate to the checked types
    #[arg(long, value_name = "NAME", default_value = "loom")]
    pub(crate) cfg: String,
    /// Build with optimizations
    #[arg(long)]
    pub(crate) release: bool,
    /// Arguments for cargo test, such as `-p NAME --features loom --test loom`
    #[arg(last = true, value_name = "CARGO-ARGUMENTS")]
    pub(crate) cargo: Vec<String>,
}

/// How to run tests.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Run only tests whose name contains one of these
    pub(crate) filters: Vec<String>,
    /// Leave out tests whose name contains this
    #[arg(long, value_name = "FILTER")]
    pub(crate) skip: Vec<String>,
    /// Names of tests are to be equal to the filters
    #[arg(long)]
    pub(crate) exact: bool,
    /// Run only tests that are marked `#[ignore]`
    #[arg(long)]
    pub(crate) ignored: bool,
    /// Run tests that are marked `#[ignore]` as well
    #[arg(long, conflicts_with = "ignored")]
    pub(crate) include_ignored: bool,
    /// Use N processes: N tests at the same time, and several processes for each test if there are fewer tests
    #[arg(long, short, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1024))]
    pub(crate) jobs: Option<usize>,
    /// The memory model: sc, tso, ra or rc11
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only executions with at most K preemptions
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) preemptions: Option<u32>,
    /// Stop each model after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) max_duration: Option<u64>,
    /// A test that a limit stopped does not fail
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
    /// Run tests without confinement: they may start programs, change files and open sockets
    #[arg(long)]
    pub(crate) no_confinement: bool,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write an HTML report on each test into this directory, and an index.html that leads to them
    #[arg(long, value_name = "DIR")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) build: Build,
}

/// The execution to run again.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The name of the test
    pub(crate) test: String,
    /// The schedule that the failed test printed, in quotes
    pub(crate) token: String,
    /// Run it without confinement
    #[arg(long)]
    pub(crate) no_confinement: bool,
    #[command(flatten)]
    pub(crate) build: Build,
}
