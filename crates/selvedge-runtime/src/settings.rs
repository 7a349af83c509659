//! The settings of a program under test.

use std::ffi::CString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use selvedge_core::fingerprint::Fingerprint;
use selvedge_core::ltl::Atom;

use crate::locations::Extent;
use crate::rounds::Unroll;

/// The treatment of plain (non-atomic) accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// Invisible, and checked for data races.
    #[default]
    Race,
    /// Events of their own, sequentially consistent; no race check.
    Sc,
}

/// Settings of a [`NativeMachine`](crate::NativeMachine); the defaults suit small programs.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The treatment of plain accesses.
    pub plain: Plain,
    /// How many rounds loops may make. The program has to be compiled with marks
    /// (`-fsanitize-coverage=trace-pc`).
    pub unroll: Unroll,
    /// Bytes of stack per thread.
    pub stack_size: usize,
    /// Bytes of heap per execution.
    pub heap_limit: usize,
    /// The largest number of threads.
    pub max_threads: u32,
    /// How much processor time a thread may take between two visible operations.
    pub watchdog: Duration,
    /// Whether condition variables wake up without a signal.
    pub spurious_wakeups: bool,
    /// Whether weak compare-exchanges may fail although they read what they expect.
    pub spurious_failures: bool,
    /// Whether an allocation may return the block of its size that the thread freed last.
    pub reuse_memory: bool,
    /// Whether the memory model has fences: futexes rest on them.
    pub fences: bool,
    /// Whether a thread is stopped as if an assumption did not hold when it retries something and
    /// is where it would have been without the attempt that failed.
    pub skip_retries: bool,
    /// Whether a thread that comes back to the same state is [`Stop::Spinning`](selvedge_core::Stop)
    /// although it took mutexes and gave them back meanwhile. Only for explorers that start over when
    /// [`misjudged`](selvedge_core::SpinLoops::misjudged) tells them to.
    pub watch_locks: bool,
    /// Whether what is run is to be enforced later, which not everything can be.
    pub enforced: bool,
    /// Bytes that threads access with different widths at the same time: each is one location. Only
    /// for sequential consistency.
    pub merged: Vec<Extent>,
    /// Whether the program's output is shown.
    pub show_output: bool,
    /// Whether memory that is still allocated at the end is an error.
    pub check_leaks: bool,
    /// Whether states are going to be saved and restored
    /// ([`StateMachine`](selvedge_core::StateMachine)): every access to memory that others can
    /// reach is then a visible operation, no races are looked for, freed memory is used again, and
    /// sleeping takes no time.
    pub stateful: bool,
    /// The propositions that are asked about: named ones, and expressions that were compiled into
    /// the program.
    pub propositions: Vec<Atom>,
    /// Whether progress marks are visible.
    pub progress: bool,
    /// The arguments of `main`, after the program's name.
    pub arguments: Vec<CString>,
    /// The environment: `NAME=VALUE`.
    pub environment: Vec<CString>,
    /// The file with the program's standard input.
    pub stdin: Option<PathBuf>,
    /// Whether ending with a status other than zero is a bug.
    pub check_status: bool,
    /// Called before any code of the program runs, with the place of the table through which it calls the
    /// runtime: nobody has to write there from then on.
    pub filled: fn(Range<usize>),
}

impl Settings {
    /// Tells whether settings have changed since they were looked at.
    pub(crate) fn fingerprint(&self) -> (u64, u64) {
        let mut fingerprint = Fingerprint::new();
        fingerprint.bytes(format!("{self:?}").as_bytes());
        fingerprint.finish()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            plain: Plain::Race,
            unroll: Unroll::default(),
            stack_size: 256 << 10,
            heap_limit: 256 << 20,
            max_threads: 1000,
            watchdog: Duration::from_secs(5),
            spurious_wakeups: false,
            spurious_failures: false,
            reuse_memory: false,
            fences: true,
            skip_retries: true,
            watch_locks: false,
            enforced: false,
            merged: Vec::new(),
            show_output: false,
            check_leaks: false,
            stateful: false,
            propositions: Vec::new(),
            progress: false,
            arguments: Vec::new(),
            environment: Vec::new(),
            stdin: None,
            check_status: false,
            filled: |_| {},
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_settings_is_noticed() {
        let settings = Settings::default();
        assert_eq!(settings.fingerprint(), settings.clone().fingerprint());
        let leaks = Settings {
            check_leaks: !settings.check_leaks,
            ..settings.clone()
        };
        assert_ne!(settings.fingerprint(), leaks.fingerprint());
        let limit = Settings {
            heap_limit: settings.heap_limit + 1,
            ..settings.clone()
        };
        assert_ne!(settings.fingerprint(), limit.fingerprint());
    }
}
