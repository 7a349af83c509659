//! Classic-DPOR (Algorithm 4; Flanagan and Godefroid, POPL 2005): at every node, for every thread,
//! the last dependent step of another thread. No sleep sets.

use super::Algorithm;
use super::act::{Act, Next};
use super::explore::State;
use super::trace::StepIndex;
use crate::ids::ThreadId;

pub(super) struct ClassicDpor;

impl Algorithm for ClassicDpor {
    fn arrive(&mut self, state: &mut State) {
        for index in 0..state.trace.graph.threads() as u32 {
            let Some(&next) = state.pending_of(ThreadId(index)) else {
                continue;
            };
            let trace = &state.trace;
            let clock = trace.clock(next.act.thread);
            let last = trace.dependent(&next).find(|&i| !trace.knows(clock, i));
            if let Some(i) = last {
                state.add_or_all(i, next.act.thread);
            }
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        let node = state.here();
        let Some(oldest) = node.enabled.iter().next() else {
            return false;
        };
        node.back.insert(oldest);
        true
    }

    fn sleeps(&mut self, _state: &mut State, _act: &Act) -> bool {
        false
    }
}

impl State {
    /// `next(p)` if the thread can go on or waits for a value.
    pub(super) fn pending_of(&self, thread: ThreadId) -> Option<&Next> {
        let next = self.next(thread)?;
        (next.enabled() || next.waits_for_value()).then_some(next)
    }

    /// Adds `thread` to `back(i)` if it is enabled there, else everything that is.
    pub(super) fn add_or_all(&mut self, i: StepIndex, thread: ThreadId) {
        let node = self.node_mut(i);
        if node.enabled.contains(thread) {
            node.back.insert(thread);
        } else {
            node.back.clone_from(&node.enabled);
        }
    }
}

impl super::trace::Trace {
    /// The steps of other threads, newest first, that are dependent and may be co-enabled with `next`.
    pub(super) fn dependent<'a>(&'a self, next: &'a Next) -> impl Iterator<Item = StepIndex> + 'a {
        let accesses = match next.act.location() {
            Some(location) => self.accesses(location),
            None => &[],
        };
        let others = move |&i: &StepIndex| self.step(i).act.thread != next.act.thread;
        let accesses = accesses.iter().rev().copied().filter(others);
        accesses.filter(move |&i| self.reversible(next, i))
    }
}
