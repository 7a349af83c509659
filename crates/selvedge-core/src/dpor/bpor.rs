//! BPOR (Algorithm 7; Coons et al., OOPSLA 2013): for every thread, and every other one, the last
//! dependent step; a branch there and a *conservative* one at the start of that step's block, where
//! the switch may be free.
//!
//! A thread that has to wait is left for free, so what *ends* its waiting matters as well: the last
//! step of a thread that is joined, an unlock, a post. Had it come later, leaving would have cost
//! nothing. Such a step can never be exchanged with the waiting one, but any thread that is enabled
//! before it may go first. (Without that, `y = 1 | x = 1; y = 2; x = 3` with main doing `x = 4`, joining
//! the first thread and doing `x = 5` loses one class at two preemptions.)
//!
//! Complete within the bound only without sleep sets, without a happens-before filter, and if the
//! running thread is always explored first. Deviations from the print: the conservative point is
//! the start of the block that the step belongs to (`j ≤ i`), and lines 11 to 14 mean that point.

use super::Algorithm;
use super::act::{Act, Target};
use super::explore::State;
use super::trace::StepIndex;
use crate::ids::ThreadId;

pub(super) struct Bpor {
    bound: u32,
    // The fields below differ in `specimen.rs` only.
    pub(super) conservative: bool,
    pub(super) heeds_waiting: bool,
    pub(super) races_only: bool,
    pub(super) oldest_first: bool,
}

impl Bpor {
    pub(super) fn new(bound: u32) -> Bpor {
        Bpor {
            bound,
            conservative: true,
            heeds_waiting: true,
            races_only: false,
            oldest_first: false,
        }
    }

    /// The last step of `other` that ended the waiting of `p`, whose next step could have had to wait.
    fn last_enabling(&self, state: &State, p: ThreadId, other: ThreadId) -> Option<StepIndex> {
        let trace = &state.trace;
        let next = state.next(p).filter(|_| self.heeds_waiting)?;
        match next.act.target {
            Target::Join(child) if child != other => None,
            Target::Join(_) | Target::JoinAll => trace.last_of(other),
            Target::Location(at) if next.may_wait() => {
                let mut accesses = trace.accesses(at).iter().rev().copied();
                accesses.find(|&i| {
                    let act = trace.step(i).act;
                    act.thread == other
                        && act.writes
                        && next.at_value(trace.step(i).before).is_none()
                })
            }
            _ => None,
        }
    }

    /// The last dependent step of `other`.
    fn last_dependent(&self, state: &State, p: ThreadId, other: ThreadId) -> Option<StepIndex> {
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
                let dependent = self.last_dependent(state, p, q);
                let enabling = self.last_enabling(state, p, q);
                for i in dependent.into_iter().chain(enabling) {
                    state.add_or_all(i, p);
                    if self.conservative {
                        let start = state.trace.step(i).block;
                        state.add_or_all(start, p);
                    }
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
