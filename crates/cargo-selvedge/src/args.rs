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
    /// Run a crate's loom-style tests
    Test(Test),
}

/// How to run tests.
#[derive(Debug, Args)]
pub(crate) struct Test {
    /// Run only tests whose name contains this
    pub(crate) filter: Option<String>,
    /// The cfg that switches the crate to the checked types
    #[arg(long, value_name = "NAME", default_value = "loom")]
    pub(crate) cfg: String,
    /// The memory model: sc, tso, ra or rc11
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Only executions with at most so many preemptions
    #[arg(long, value_name = "K")]
    pub(crate) preemptions: Option<u32>,
    /// Stop each model after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub(crate) max_duration: Option<u64>,
    /// Write the results as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Build with optimizations
    #[arg(long)]
    pub(crate) release: bool,
    /// Arguments for cargo test, such as `-p NAME --features loom --test loom`
    #[arg(last = true, value_name = "CARGO-ARGUMENTS")]
    pub(crate) cargo: Vec<String>,
}
