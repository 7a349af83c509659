//! Source-BPOR (Algorithm 9, as printed): source sets for the branches at the step, and conservative branches as
//! in Nidhugg-BPOR. Loses executions for the reasons Nidhugg-BPOR does, and without any sleep sets still
//! others, because a source set within a bound must offer the cheap start, not just any.

use super::Algorithm;
use super::act::Act;
use super::explore::State;
use super::nidhugg_bpor::Sleep;
use super::source::Initials;
use crate::ids::ThreadId;

pub(super) struct SourceBpor {
    pub(super) bound: u32,
    pub(super) sleep: Sleep,
}

impl SourceBpor {
    pub(super) fn new(bound: u32) -> SourceBpor {
        SourceBpor {
            bound,
            sleep: Sleep::NotConservative,
        }
    }
}

impl Algorithm for SourceBpor {
    fn arrive(&mut self, state: &mut State) {
        state.wake_if(self.sleep);
        if state.awake(false).next().is_none() {
            state.branch_conservatively_for_waiting(Initials::Source);
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
        state.branch_conservatively(&next, Initials::Source);
    }

    fn sleeps(&mut self, state: &mut State, act: &Act) -> bool {
        state.sleeps_after(act, self.sleep)
    }
}
