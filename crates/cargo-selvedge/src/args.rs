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

/// What cargo hands over.
#[derive(Debug, Args)]
pub(crate) struct Selvedge {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a crate's loom tests, unmodified, with Selvedge in the place of loom
    Test(Test),
    /// Run one execution of a test again, with its panics shown as they happen
    Replay(Replay),
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
    /// Run so many tests at the same time, each in a process of its own
    #[arg(long, short, value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// The memory model: sc, tso, ra or rc11
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only executions with at most so many preemptions
    #[arg(long, value_name = "K")]
    pub(crate) preemptions: Option<u32>,
    /// Stop each model after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_duration: Option<u64>,
    /// A test that a limit stopped does not fail
    #[arg(long)]
    pub(crate) allow_incomplete: bool,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) build: Build,
}

/// Which execution to run again.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The name of the test
    pub(crate) test: String,
    /// The schedule that the failed test printed, in quotes
    pub(crate) token: String,
    #[command(flatten)]
    pub(crate) build: Build,
}
