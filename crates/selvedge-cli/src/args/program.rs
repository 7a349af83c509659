//! The options that say how the program under test behaves.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use selvedge_runtime::Extent;
use serde::{Deserialize, Serialize};

use super::values::{
    Plain, SystemHeaders, Unroll, Words, bytes, name_of, seconds, stack_bytes, unroll, variable,
    words,
};
use crate::paths;
use crate::verify::cases::Case;

/// The details that reports show of the program and its libraries.
#[derive(Args, Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Shown {
    /// Lines of installed headers, and changes to them
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub(crate) system_headers: SystemHeaders,

    /// Write names of C++ with all template arguments and parameters
    #[arg(long)]
    pub(crate) full_names: bool,
}

/// How the program under test behaves.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProgramOptions {
    /// Plain accesses: check them for data races, or make each one a step of its own
    #[arg(long, value_enum, default_value_t = Plain::Race)]
    pub(crate) plain: Plain,

    /// Cut a loop after N rounds with a visible operation, counted from each entry of the loop;
    /// FUNCTION=N is for the loops of one function. The verdict then names the bound
    #[arg(long, value_name = "[FUNCTION=]N", value_parser = unroll)]
    #[serde(default)]
    pub(crate) unroll: Vec<Unroll>,

    /// Condition variables may wake up without a signal
    #[arg(long)]
    pub(crate) spurious_wakeups: bool,

    /// Weak compare-exchanges may fail although they read what they expect
    #[arg(long)]
    #[serde(default)]
    pub(crate) spurious_failures: bool,

    /// An allocation may return the block of its size that the thread freed last
    #[arg(long)]
    #[serde(default)]
    pub(crate) reuse_memory: bool,

    /// Report memory that is still allocated at the end
    #[arg(long)]
    pub(crate) leaks: bool,

    /// Threads one execution may have
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=65535))]
    pub(crate) max_threads: u32,

    /// Stack of each thread, in bytes (K, M and G work)
    #[arg(long, value_name = "BYTES", default_value = "256K", value_parser = stack_bytes)]
    pub(crate) stack_size: usize,

    /// Memory one execution may allocate, in bytes (K, M and G work)
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = bytes)]
    pub(crate) heap_limit: usize,

    /// Memory the search may take in all, in bytes (K, M and G work); half of the machine's if not
    /// given
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    #[serde(default)]
    pub(crate) memory_limit: Option<usize>,

    /// A thread that runs this long without a visible operation is in an endless loop
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub(crate) watchdog: Duration,

    /// Arguments of `main` after the program's name, as words of a shell
    #[arg(long, value_name = "ARGUMENTS", value_parser = words)]
    #[serde(default)]
    pub(crate) args: Option<Words>,

    /// A variable of the program's environment, which is empty otherwise
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    #[serde(default)]
    pub(crate) env: Vec<String>,

    /// The program's standard input
    #[arg(long, value_name = "FILE")]
    #[serde(default, with = "paths")]
    pub(crate) stdin: Option<PathBuf>,

    /// Report a program that ends with a status other than zero
    #[arg(long)]
    #[serde(default)]
    pub(crate) check_status: bool,

    /// Let the program make any system call; for debuggers and profilers
    #[arg(long)]
    #[serde(default)]
    pub(crate) no_confinement: bool,

    #[command(flatten, next_help_heading = "Output")]
    #[serde(default)]
    pub(crate) shown: Shown,

    /// Bytes that threads were found to access with different widths at the same time.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) merged: Vec<Extent>,
}

impl ProgramOptions {
    /// Has the program run one test case.
    pub(crate) fn select(&mut self, case: &Case) {
        self.args = Some(Words(case.arguments.clone()));
        self.check_status = true;
    }

    /// Adds bytes that are one location, in place of those that they contain.
    pub(crate) fn merge(&mut self, new: Extent) {
        let end = |extent: &Extent| extent.start + u64::from(extent.width);
        self.merged.retain(|old| {
            let apart = end(old) <= new.start || end(&new) <= old.start;
            apart || old.global != new.global
        });
        self.merged.push(new);
    }

    /// After how many rounds loops are cut whose functions have no bound of their own.
    pub(crate) fn rounds(&self) -> Option<u32> {
        let general = |unroll: &&Unroll| unroll.function.is_none();
        let last = self.unroll.iter().rfind(general);
        last.map(|unroll| unroll.rounds)
    }

    /// After how many rounds the loops of functions are cut.
    pub(crate) fn rounds_of_functions(&self) -> Vec<(String, u32)> {
        let named = self.unroll.iter().filter_map(|unroll| {
            let function = unroll.function.clone()?;
            Some((function, unroll.rounds))
        });
        named.collect()
    }

    /// The options that say the same.
    pub(crate) fn options(&self) -> Vec<String> {
        let mut options = vec![format!("--plain={}", name_of(self.plain))];
        let headers = self.shown.system_headers;
        if headers != SystemHeaders::default() {
            options.push(format!("--system-headers={}", name_of(headers)));
        }
        options.extend(
            self.unroll
                .iter()
                .map(|unroll| format!("--unroll={unroll}")),
        );
        let switches = [
            (self.spurious_wakeups, "--spurious-wakeups"),
            (self.spurious_failures, "--spurious-failures"),
            (self.reuse_memory, "--reuse-memory"),
            (self.leaks, "--leaks"),
            (self.check_status, "--check-status"),
            (self.no_confinement, "--no-confinement"),
            (self.shown.full_names, "--full-names"),
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
        options.extend(self.args.iter().map(|words| format!("--args={words}")));
        options.extend(self.env.iter().map(|variable| format!("--env={variable}")));
        let stdin = self.stdin.iter();
        options.extend(stdin.map(|file| format!("--stdin={}", file.display())));
        options.extend(
            self.memory_limit
                .map(|bytes| format!("--memory-limit={bytes}")),
        );
        options
    }
}
