//! Counters that the command and its worker share.

use std::sync::atomic::{AtomicU64, Ordering};

use selvedge_core::report::{Counts, StateCounts};
use selvedge_runtime::process::SharedCounters;

/// The shared counters by name.
pub(crate) struct Counters(pub(crate) SharedCounters);

impl Counters {
    fn slot(&self, index: usize) -> &AtomicU64 {
        &self.0.counters()[index]
    }

    /// Complete executions.
    pub(crate) fn executions(&self) -> &AtomicU64 {
        self.slot(0)
    }

    /// Blocked executions.
    pub(crate) fn blocked(&self) -> &AtomicU64 {
        self.slot(1)
    }

    /// How often the program was started from the beginning.
    pub(crate) fn runs(&self) -> &AtomicU64 {
        self.slot(2)
    }

    /// Steps of all runs: grows as long as the worker is alive.
    pub(crate) fn steps(&self) -> &AtomicU64 {
        self.slot(3)
    }

    /// Set by the command when the worker is to stop.
    pub(crate) fn stop(&self) -> &AtomicU64 {
        self.slot(4)
    }

    /// Set when a process of a proof has done its part, so that the others divide what they have left.
    pub(crate) fn part_done(&self) -> &AtomicU64 {
        self.slot(10)
    }

    /// How far a search over states has come.
    pub(crate) fn tell_states(&self, counts: &StateCounts) {
        let all = [
            counts.states,
            counts.transitions,
            counts.layer.into(),
            counts.queue,
            counts.bytes,
        ];
        for (slot, count) in (5..).zip(all) {
            self.slot(slot).store(count, Ordering::Relaxed);
        }
    }

    /// The same for the reader; `None` if the search is about something else.
    pub(crate) fn states(&self) -> Option<StateCounts> {
        let slot = |index| self.slot(index).load(Ordering::Relaxed);
        let counts = StateCounts {
            states: slot(5),
            transitions: slot(6),
            layer: slot(7) as u32,
            queue: slot(8),
            bytes: slot(9),
        };
        (counts.states > 0).then_some(counts)
    }

    /// Executions so far.
    pub(crate) fn counts(&self) -> Counts {
        Counts {
            executions: self.executions().load(Ordering::Relaxed),
            blocked: self.blocked().load(Ordering::Relaxed),
            ..Counts::default()
        }
    }
}
