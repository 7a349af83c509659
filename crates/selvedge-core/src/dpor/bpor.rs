//! BPOR (Algorithm 7; Coons et al., OOPSLA 2013): for every thread, and every other one, the last dependent
//! step; a branch there and a *conservative* one at the start of that step's block, where the switch may be
//! free.
//!
//! Complete within the bound only without sleep sets, without a happens-before filter, and if the running
//! thread is always explored first. Deviations from the print: the conservative point is the start of the
//! block that the step belongs to (`j ≤ i`), and lines 11 to 14 mean that point.

use super::Algorithm;
use super::act::Act;
use super::explore::State;
use super::trace::Place;
use crate::ids::ThreadId;

pub(super) struct Bpor {
    bound: u32,
    conservative: bool,
    races_only: bool,
    oldest_first: bool,
}

impl Bpor {
    pub(super) fn new(bound: u32) -> Bpor {
        Bpor {
            bound,
            conservative: true,
            races_only: false,
            oldest_first: false,
        }
    }

    /// Heeds only steps that do not happen before the next one. Loses executions.
    pub(super) fn races_only(self) -> Bpor {
        Bpor {
            races_only: true,
            ..self
        }
    }

    /// Adds no conservative branches. Loses executions.
    pub(super) fn without_conservative(self) -> Bpor {
        Bpor {
            conservative: false,
            ..self
        }
    }

    /// Begins with the oldest thread that the bound allows. Loses executions.
    pub(super) fn oldest_first(self) -> Bpor {
        Bpor {
            oldest_first: true,
            ..self
        }
    }

    /// The last dependent step of `other`.
    fn last_dependent(&self, state: &State, p: ThreadId, other: ThreadId) -> Option<Place> {
        let next = state.pending_of(p)?;
        let trace = &state.trace;
        let clock = trace.clock(p);
        let mut dependent = trace.dependent(next);
        dependent.find(|&i| {
            let known = self.races_only && trace.knows(clock, i);
            trace.step(i).act.thread == other && !known
        })
    }
}

impl Algorithm for Bpor {
    fn arrive(&mut self, state: &mut State) {
        let threads = state.trace.graph.threads() as u32;
        for p in (0..threads).map(ThreadId) {
            for q in (0..threads).map(ThreadId).filter(|&q| q != p) {
                let Some(i) = self.last_dependent(state, p, q) else {
                    continue;
                };
                state.add_or_all(i, p);
                if self.conservative {
                    let start = state.trace.step(i).block;
                    state.add_or_all(start, p);
                }
            }
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        if !self.oldest_first {
            return state.begin_within(self.bound);
        }
        let mut awake = state.awake(false);
        let first = awake.find(|&thread| state.preemptions_with(thread) <= self.bound);
        drop(awake);
        let Some(oldest) = first else {
            return false;
        };
        state.here().back.insert(oldest);
        true
    }

    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        state.preemptions_with(thread) <= self.bound
    }

    fn sleeps(&mut self, _state: &mut State, _act: &Act) -> bool {
        false
    }
}
