//! Source-DPOR (Algorithm 3; Abdulla et al., POPL 2014).

use super::Algorithm;
use super::act::Next;
use super::explore::State;
use super::trace::StepIndex;
use crate::ids::ThreadId;

pub(super) struct SourceDpor;

impl Algorithm for SourceDpor {
    fn arrive(&mut self, state: &mut State) {
        if state.awake(false).next().is_none() {
            state.branch_for_waiting(Initials::Source);
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        let Some(thread) = state.awake(false).next() else {
            return false;
        };
        state.here().back.insert(thread);
        true
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let next = *state.next(thread).expect("it is about to be explored");
        state.branch_for_races(&next, Initials::Source);
    }
}

/// The threads that may start a reversal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Initials {
    /// *I(u)*
    Source,
    /// *CI(u)*: those whose first step is the racing one or happens before it.
    Persistent,
}

impl State {
    /// For every race of `next`, sees to it that the reversal is explored.
    pub(super) fn branch_for_races(&mut self, next: &Next, initials: Initials) {
        let mut places = std::mem::take(&mut self.places);
        self.trace.races(next, &mut places);
        for &i in &places {
            self.add_branch(i, next, initials);
        }
        self.places = places;
    }

    /// The same for every thread that waits for a value.
    pub(super) fn branch_for_waiting(&mut self, initials: Initials) {
        for index in 0..self.trace.graph.threads() as u32 {
            if let Some(&next) = self.next(ThreadId(index))
                && next.waits_for_value()
            {
                self.branch_for_races(&next, initials);
            }
        }
    }

    /// `addBranch(i, u(i, next))`: unless one of its initials is explored from there anyway, adds one.
    ///
    /// For persistent sets that is the candidate closest to the end of the trace, as in the
    /// document's code (Algorithm 13): the racing thread itself wherever it can start. Any other
    /// serves too, but more executions are given up then (60 in place of 33 in `lastzero`).
    pub(super) fn add_branch(&mut self, i: StepIndex, next: &Next, initials: Initials) {
        let related_only = initials == Initials::Persistent;
        let (trace, node) = (&self.trace, self.node(i));
        let starts = |&thread: &ThreadId| trace.is_initial(thread, i, next, related_only);
        if node.back.iter().any(|thread| starts(&thread)) {
            return;
        }
        let own = Some(next.act.thread).filter(|&own| related_only && node.enabled.contains(own));
        let first = || node.enabled.iter().find(starts);
        if let Some(thread) = own.filter(starts).or_else(first) {
            self.node_mut(i).back.insert(thread);
        }
    }
}
