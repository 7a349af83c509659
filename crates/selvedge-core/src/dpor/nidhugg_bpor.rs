//! Nidhugg-BPOR (Algorithm 8, as printed but for `Sleep'` in line 24): Nidhugg-DPOR within the
//! bound, with a conservative branch at the start of the block for each race. What was added
//! conservatively does not go to sleep, but what was explored there first does, and then the
//! conservative branch finds it asleep: so executions are lost. Repaired, the algorithm is BPOR.

use super::Algorithm;
use super::act::{Act, Next};
use super::explore::State;
use super::source::Initials;
use super::trace::StepIndex;
use crate::ids::ThreadId;

/// The threads that go to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "specimens"),
    expect(dead_code, reason = "only specimens differ from the printed algorithm")
)]
pub(super) enum Sleep {
    /// Threads that were not added conservatively, as printed.
    NotConservative,
    /// The same, but conservative branches begin with an empty sleep set.
    WokenByConservative,
    /// Only threads that end with the step.
    OnlyEnded,
    /// Nothing.
    Never,
}

pub(super) struct NidhuggBpor {
    pub(super) bound: u32,
    /// The threads that may start a reversal: [`Initials::Persistent`] here.
    pub(super) initials: Initials,
    pub(super) sleep: Sleep,
}

impl NidhuggBpor {
    pub(super) fn new(bound: u32) -> NidhuggBpor {
        NidhuggBpor {
            bound,
            initials: Initials::Persistent,
            sleep: Sleep::NotConservative,
        }
    }
}

impl Algorithm for NidhuggBpor {
    fn arrive(&mut self, state: &mut State) {
        state.wake_if(self.sleep);
        if state.awake(false).next().is_none() {
            state.branch_conservatively_for_waiting(self.initials);
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        state.begin_within(self.bound)
    }

    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        state.preemptions_with(thread) <= self.bound
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let next = *state.next(thread).expect("it is about to be explored");
        state.branch_conservatively(&next, self.initials);
    }

    fn sleeps(&mut self, state: &mut State, act: &Act) -> bool {
        state.sleeps_after(act, self.sleep)
    }
}

impl State {
    /// For every race: a branch at the step, and a conservative one at the start of its block.
    fn branch_conservatively(&mut self, next: &Next, initials: Initials) {
        let mut places = std::mem::take(&mut self.places);
        self.trace.races(next, &mut places);
        for &i in &places {
            self.add_branch(i, next, initials);
            let start = self.trace.step(i).block;
            self.add_conservative_branch(start, next);
        }
        self.places = places;
    }

    /// The same for every thread that waits for a value.
    fn branch_conservatively_for_waiting(&mut self, initials: Initials) {
        for index in 0..self.trace.graph.threads() as u32 {
            if let Some(&next) = self.next(ThreadId(index))
                && next.waits_for_value()
            {
                self.branch_conservatively(&next, initials);
            }
        }
    }

    /// Adds the racing thread itself, if it is enabled where the block starts (Algorithm 15). Where
    /// it is wanted for a race too, the conservative branch prevails.
    fn add_conservative_branch(&mut self, start: StepIndex, next: &Next) {
        let thread = next.act.thread;
        let node = self.node_mut(start);
        if node.enabled.contains(thread) {
            node.back.insert(thread);
            node.conservative.insert(thread);
        }
    }

    fn sleeps_after(&self, act: &Act, sleep: Sleep) -> bool {
        let node = self.node(self.trace.len());
        match sleep {
            Sleep::NotConservative | Sleep::WokenByConservative => {
                !node.conservative.contains(act.thread)
            }
            Sleep::OnlyEnded => node.ended.contains(act.thread),
            Sleep::Never => false,
        }
    }

    /// Empties the sleep set of a node that a conservative branch led to.
    fn wake_if(&mut self, sleep: Sleep) {
        let Some(last) = self.trace.len().checked_sub(1) else {
            return;
        };
        let thread = self.trace.step(last).act.thread;
        if sleep == Sleep::WokenByConservative && self.node(last).conservative.contains(thread) {
            self.here().sleep.clear();
        }
        if self.next(thread).is_none() {
            self.node_mut(last).ended.insert(thread);
        }
    }
}
