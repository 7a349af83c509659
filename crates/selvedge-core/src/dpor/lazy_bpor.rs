//! Lazy-BPOR (Algorithm 22, repaired): Source-DPOR that counts the preemptions which no equivalent sequence can
//! avoid. No conservative branches: what sleeps was seen with the same count.
//!
//! Deviations from the print: the least number of preemptions is computed over the steps, not over a graph of
//! blocks; the races of every thread are heeded at every node, explored or not, allowed or not, for a
//! branch that the bound rejects hides the races beyond it; the running thread goes first only because that
//! cuts fewer branches. The approximations (Algorithms 20 and 21) do not count joins and locks: a thread
//! that waits leaves for free.
//!
//! Rejecting every prefix beyond the bound loses executions still, if rarely (one class in 2,000 programs with
//! mutexes): races two rejected steps away are not seen. So prefixes may exceed the bound by the slack of the
//! graph engine, the number of threads minus two; what completes beyond the bound does not count. That each
//! class within the bound is visited then is shown by brute force, not proven.

use super::explore::State;
use super::source::Initials;
use super::trace::{StepIndex, Trace};
use super::{Algorithm, Completed};
use crate::ids::ThreadId;
use crate::linear::least_preemptions;

/// How the preemptions of a class are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// The least number over its linearisations.
    Least,
    /// Algorithm 20: a block counts if something must come between it and the first step of its thread.
    First,
    /// Algorithm 21: a block counts if something must come between it and the thread's block before. That
    /// many preemptions are needed at least.
    Second,
}

pub(super) struct LazyBpor {
    bound: u32,
    count: Count,
    /// Whether prefixes may exceed the bound by a little; what completes beyond it is not counted.
    slack: bool,
    /// How many threads the program was thought to have when the bound first rejected a step.
    rejected_at: Option<usize>,
    // These three differ in `specimen.rs` only.
    pub(super) races_of_all: bool,
    pub(super) running_first: bool,
    pub(super) count_all: bool,
    /// For each node on the way, what is known about its preemptions.
    path: Vec<Known>,
    /// The same for the node that the step allowed last leads to.
    ahead: Known,
}

/// For [`Count::Least`] the preemptions and the last thread of some linearisation, otherwise the
/// approximation.
#[derive(Clone, Copy)]
struct Known {
    preemptions: u32,
    last: ThreadId,
}

const NOTHING: Known = Known {
    preemptions: 0,
    last: ThreadId::MAIN,
};

impl LazyBpor {
    pub(super) fn new(bound: u32, count: Count) -> LazyBpor {
        LazyBpor {
            bound,
            count,
            slack: true,
            rejected_at: None,
            races_of_all: true,
            running_first: true,
            count_all: false,
            path: vec![NOTHING],
            ahead: NOTHING,
        }
    }

    /// Rejects whatever exceeds the bound. Loses executions.
    pub(super) fn without_slack(self) -> LazyBpor {
        LazyBpor {
            slack: false,
            ..self
        }
    }

    /// How many preemptions a prefix may need.
    fn limit(&self, trace: &Trace) -> u32 {
        let slack = trace.graph.threads().saturating_sub(2) as u32;
        self.bound + if self.slack { slack } else { 0 }
    }

    /// The knowledge about `E.p`, which is the trace now; `before` is about `E`.
    fn judge(&mut self, trace: &Trace, before: Known) -> Option<Known> {
        let last = trace.running();
        let known = match self.count {
            Count::Least => return self.least(trace, before),
            Count::First | Count::Second => Known {
                preemptions: before.preemptions + u32::from(self.is_forced(trace)),
                last,
            },
        };
        (known.preemptions <= self.limit(trace)).then_some(known)
    }

    /// A linearisation within the bound. Appending the step to the one known costs at most what leaving its
    /// thread before had not cost yet.
    fn least(&mut self, trace: &Trace, before: Known) -> Option<Known> {
        let step = trace.len() - 1;
        let thread = trace.running();
        let first = trace.step(step).last == trace.graph.thread(thread)[0];
        let began = thread == ThreadId::MAIN || !first;
        let price = u32::from(thread != before.last && began);
        let limit = self.limit(trace);
        if before.preemptions + price <= limit {
            return Some(Known {
                preemptions: before.preemptions + price,
                last: thread,
            });
        }
        let clocks = trace.model.clocks();
        let (preemptions, runs) = least_preemptions(&trace.graph, clocks, false, limit)?;
        let last = runs.last().expect("there is a step").thread;
        Some(Known { preemptions, last })
    }

    /// Whether the last step begins a block that something must come before, but not before an earlier step
    /// of its thread.
    fn is_forced(&self, trace: &Trace) -> bool {
        let e = trace.len() - 1;
        let step = trace.step(e);
        if step.block != e || (step.op.may_wait() && !self.count_all) {
            return false;
        }
        let thread = step.act.thread;
        let earlier = match self.count {
            Count::First => trace.first_from(thread, 0).filter(|&a| a < e),
            _ => trace.previous(e),
        };
        earlier.is_some_and(|a| trace.comes_between(a, e))
    }
}

impl Trace {
    /// The step of the same thread before the one at `place`.
    fn previous(&self, place: StepIndex) -> Option<StepIndex> {
        let thread = self.step(place).act.thread;
        let steps = self.steps()[..place].iter();
        steps
            .into_iter()
            .rposition(|step| step.act.thread == thread)
    }

    /// Whether `a → i → e` for some step `i` of another thread.
    fn comes_between(&self, a: StepIndex, e: StepIndex) -> bool {
        let own = self.step(e).act.thread;
        let clock = self.order(e);
        let threads = (0..clock.len() as u32).map(ThreadId);
        threads.filter(|&thread| thread != own).any(|thread| {
            let last = self.last_known(thread, clock);
            last.is_some_and(|i| self.happens_before(a, i))
        })
    }
}

impl Algorithm for LazyBpor {
    fn arrive(&mut self, state: &mut State) {
        if self.races_of_all {
            for index in 0..state.trace.graph.threads() as u32 {
                if let Some(&next) = state.pending_of(ThreadId(index)) {
                    state.branch_for_races(&next, Initials::Source);
                }
            }
        } else if state.awake(false).next().is_none() {
            state.branch_for_waiting(Initials::Source);
        }
    }

    fn begin(&mut self, state: &mut State) -> bool {
        let candidates: Vec<ThreadId> = state.awake(self.running_first).collect();
        let first = candidates
            .into_iter()
            .find(|&thread| self.allows(state, thread));
        let Some(thread) = first else {
            return false;
        };
        state.here().back.insert(thread);
        true
    }

    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        let before = self.path[state.trace.len()];
        let next = *state.next(thread).expect("it is enabled");
        state.trace.push(&next, 0);
        let known = self.judge(&state.trace, before);
        state.trace.pop();
        match known {
            Some(known) => self.ahead = known,
            None => {
                self.rejected_at.get_or_insert(state.trace.graph.threads());
                return false;
            }
        }
        true
    }

    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        self.path.truncate(state.trace.len() + 1);
        self.path.push(self.ahead);
        if !self.races_of_all {
            let next = *state.next(thread).expect("it is about to be explored");
            state.branch_for_races(&next, Initials::Source);
        }
    }

    fn starts_over(&mut self, threads: usize) -> bool {
        self.path = vec![NOTHING];
        let known = self.rejected_at.take();
        self.slack && known.is_some_and(|known| known < threads)
    }

    fn completed(&mut self, state: &mut State) -> Completed {
        let trace = &state.trace;
        let within = (self.count == Count::Least && !self.slack)
            || least_preemptions(&trace.graph, trace.model.clocks(), true, self.bound).is_some();
        match within {
            true => Completed::Within,
            false => Completed::Beyond,
        }
    }
}
