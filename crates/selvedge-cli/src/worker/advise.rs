//! Finds the orders and fences that would have forbidden a bug.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::repair::{self, Repair};
use selvedge_core::report::Bug as RawBug;
use selvedge_core::{Machine, Site, SpinLoops, ThreadId, with_model};

use super::counters::Counters;
use super::follow;
use super::journal::Watched;
use super::protocol::Replayed;
use crate::args::Model;
use crate::describe::{self, Accesses, Binary};
use crate::report::Advice;

/// After this many runs of the program it is given up: a limit that is the same on every machine.
const RUNS: u64 = 200_000;
/// After so long it is given up in any case: the verdict waits for it.
const TIME: Duration = Duration::from_secs(2);

/// Looks for what would have forbidden a bug.
pub(super) struct Advisor<'a> {
    pub(super) binary: &'a Binary,
    pub(super) counters: &'a Counters,
}

impl Advisor<'_> {
    /// The changes that would have forbidden `bug`, found under `model`; `None` if it is not seen
    /// again, or if memory orders have nothing to do with it.
    pub(super) fn advise(
        &self,
        machine: &mut Watched<'_>,
        model: Model,
        bug: &RawBug,
    ) -> Option<Advice> {
        // Threads and locations have other numbers in this process.
        let Replayed::Failed(found) = follow::schedule(machine, bug, self.binary, false) else {
            return None;
        };
        let accesses = Accesses::new(self.binary);
        let own = |site| accesses.is_own(site);
        let (mut runs, end) = (0, Instant::now() + TIME);
        let mut go_on = || {
            runs += 1;
            let stop = self.counters.stop().load(Ordering::Relaxed) != 0;
            runs <= RUNS && !stop && Instant::now() < end
        };
        let mut located = Located {
            machine,
            accesses: &accesses,
        };
        let (located, bug) = (&mut located, &found.raw);
        let repair = match model {
            Model::Sc => Repair::Strong,
            model => {
                with_model!(model, C => repair::repair::<C, _>(located, bug, &own, &mut go_on))
            }
        };
        if repair == Repair::Strong {
            return None;
        }
        // Names are given in the failing state, and heap blocks have the numbers of the schedule.
        let Replayed::Failed(again) = follow::schedule(machine, bug, self.binary, false) else {
            return None;
        };
        Some(describe::advice(
            self.binary,
            machine.inner(),
            model,
            &repair,
            &again,
        ))
    }
}

/// A program whose sites are those of its own source.
struct Located<'a, 'm> {
    machine: &'a mut Watched<'m>,
    accesses: &'a Accesses<'a>,
}

impl Machine for Located<'_, '_> {
    fn site(&self, thread: ThreadId) -> Site {
        self.accesses.site(self.machine.inner(), thread)
    }

    selvedge_core::forward_machine!(machine: reset, threads, pending, initial, resume);
    selvedge_core::forward_machine!(machine: pointless, watch, failure, leftover, refusal, unseen);
}

impl SpinLoops for Located<'_, '_> {
    selvedge_core::forward_machine!(machine: quiet, never_races, misjudged);
}
