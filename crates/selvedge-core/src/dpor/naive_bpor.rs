//! Naive-BPOR (Algorithm 6): Source-DPOR that takes no step beyond the bound. It loses executions whose
//! representative in Source-DPOR's order has more preemptions than they need.

use super::Algorithm;
use super::explore::State;
use super::source::SourceDpor;
use crate::ids::ThreadId;

pub(super) struct NaiveBpor {
    pub(super) bound: u32,
}

impl Algorithm for NaiveBpor {
    fn arrive(&mut self, state: &mut State) {
        SourceDpor.arrive(state);
    }

    fn begin(&mut self, state: &mut State) -> bool {
        state.begin_within(self.bound)
    }

    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        state.preemptions_with(thread) <= self.bound
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        SourceDpor.depart(state, thread);
    }
}

impl State {
    /// Begins with the running thread if it can go on and is awake, else with any that the bound
    /// allows.
    pub(super) fn begin_within(&mut self, bound: u32) -> bool {
        let mut awake = self.awake(true);
        let first = awake.find(|&thread| self.preemptions_with(thread) <= bound);
        drop(awake);
        let Some(thread) = first else {
            return false;
        };
        self.here().back.insert(thread);
        true
    }
}
