//! `selvedge estimate`.

use clap::Args;

use super::{ProgramOptions, SearchOptions, Sources, TextOrJson};

pub(super) const ESTIMATE_EXAMPLES: &str = "\
Examples:
  selvedge estimate queue.c                    two seconds of random descents
  selvedge estimate queue.c --preemptions 2    the same for a bounded search

Exit status: 0, or 2 if the program cannot be checked";

/// The options of a search that `estimate` has.
pub(super) const ESTIMATED: [&str; 22] = [
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

#[derive(Args, Debug)]
pub(crate) struct Estimate {
    #[command(flatten)]
    pub(crate) sources: Sources,

    #[command(flatten, next_help_heading = "Search")]
    pub(crate) search: SearchOptions,

    #[command(flatten, next_help_heading = "Program under test")]
    pub(crate) machine: ProgramOptions,

    /// Format of the result
    #[arg(long, value_enum, default_value_t = TextOrJson::Human, help_heading = "Output")]
    pub(crate) format: TextOrJson,
}
