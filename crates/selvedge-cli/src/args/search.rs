//! The options that say what is searched.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::values::{Equivalence, Model, ReadyMade, algorithm, bound, memory_model, seconds};

/// The space of the search, and its limits.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SearchOptions {
    /// Memory model [default: rc11, or sc where the other options need it]
    #[arg(long, value_parser = memory_model())]
    pub(crate) model: Option<Model>,

    /// The equivalence of executions: one of each class is explored
    #[arg(long, value_enum, default_value_t = Equivalence::Mazurkiewicz)]
    pub(crate) equivalence: Equivalence,

    /// Explorer [default: the best one for model and bound]
    #[arg(long, value_name = "NAME", value_parser = algorithm(None))]
    pub(crate) algorithm: Option<String>,

    /// Only executions with at most K preemptions
    #[arg(long, value_name = "K", conflicts_with = "iterative", value_parser = bound())]
    pub(crate) preemptions: Option<u32>,

    /// K = 0, 1, 2, … preemptions until complete or out of budget
    #[arg(long)]
    pub(crate) iterative: bool,

    /// Only executions with at most K delays of a round-robin scheduler
    #[arg(long, value_name = "K", value_parser = bound(), conflicts_with_all = ["preemptions", "iterative", "algorithm"])]
    pub(crate) delays: Option<u32>,

    /// Only executions with at most K context switches of any sort
    #[arg(long, value_name = "K", value_parser = bound(), conflicts_with_all = ["preemptions", "iterative", "delays"])]
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

    /// Only executions in which a thread that can always continue does continue (weak fairness)
    #[arg(long, help_heading = "Properties")]
    pub(crate) fair: bool,

    /// Runs of a random search (--algorithm random, pct or pos) [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) runs: Option<u64>,

    /// Seed of a random search [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Depth of the bugs that pct looks for: the number of steps whose order matters [default: 3]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) depth: Option<u32>,

    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_executions: Option<u64>,

    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Worker processes [default: one per processor for csdr, csdr-exact and bfs, and for trust once a
    /// search takes longer than two seconds; else one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) jobs: Option<u32>,

    /// Do not look for orders and fences that would remove a bug of weak memory
    #[arg(long)]
    pub(crate) no_advice: bool,

    /// Explore everything and report every distinct bug, not just the first
    #[arg(long)]
    pub(crate) keep_going: bool,
}

impl SearchOptions {
    /// The bound, whatever it is on.
    pub(crate) fn bound(&self) -> Option<u32> {
        self.preemptions.or(self.delays).or(self.switches)
    }
}
