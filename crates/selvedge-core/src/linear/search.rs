//! The least number of preemptions over all linearisations of a graph (Marmanis et al., "Reconciling Preemption
//! Bounding with DPOR", §3.1 and §5).
//!
//! Leaving a thread is a preemption if it has a further event in the graph and could go on: its next event
//! is not a lock that would have to wait there, nor a join of a thread that is not done. Main runs first.
//! Parked reads are left out. Whether so many preemptions are enough is NP-complete to decide; what keeps the
//! answer cheap here:
//! * a lower bound: where the path from one operation of a thread to a later one leads through another thread, the
//!   thread has to be left in between. As many such gaps as do not overlap, so many preemptions;
//! * a depth-first search over (how far each thread has come, who runs) that remembers with what budget a
//!   state failed, gives up where the lower bound of what is left exceeds the budget, and lets the
//!   running thread go on wherever that cannot be wrong. It begins with the lower bound as its budget,
//!   which is enough nearly always.

use rustc_hash::FxHashMap;

use super::gaps::Gaps;
use super::{Part, operation_end, performed_events};
use crate::graph::{Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::model::Model;
use crate::objects::ObjectFunction;
use crate::op::{Function, Op};

/// What the search remembers, kept for its memory.
#[derive(Default)]
pub(crate) struct Scratch {
    pub(crate) ends: Vec<u32>,
    done: Vec<u32>,
    failed: FxHashMap<(u128, ThreadId), u32>,
    /// The linearisation so far.
    order: Vec<Slot>,
    gaps: Gaps,
    steps: Vec<Step>,
    /// Of each step, how many events of each thread must come before it.
    before: Vec<u32>,
}

/// What is known of the operation that begins with an event.
#[derive(Clone, Copy)]
struct Step {
    slot: Slot,
    /// How many events of its thread are done after it.
    after: u32,
    /// Whether the running thread loses nothing by taking it at once.
    goes_first: bool,
}

/// The search for a linearisation.
pub(crate) struct Linear<'a> {
    graph: &'a Graph,
    scratch: &'a mut Scratch,
}

impl<'a> Linear<'a> {
    /// Over all of `graph`.
    pub(crate) fn new(
        graph: &'a Graph,
        model: &impl Model,
        scratch: &'a mut Scratch,
    ) -> Linear<'a> {
        performed_events(graph, &mut scratch.ends);
        scratch.gaps.measure(graph, model, &scratch.ends);
        Linear { graph, scratch }
    }

    /// No linearisation has fewer preemptions than this.
    pub(crate) fn at_least(&self) -> u32 {
        self.scratch.gaps.total()
    }

    /// The least number of preemptions and the operations of a linearisation that has no more, if that is
    /// within `budget`.
    pub(crate) fn search(&mut self, model: &impl Model, budget: u32) -> Option<(u32, &[Slot])> {
        self.search_from(model, self.at_least(), budget)
    }

    /// The same if the number is known to be no less than `least`.
    pub(crate) fn search_from(
        &mut self,
        model: &impl Model,
        least: u32,
        budget: u32,
    ) -> Option<(u32, &[Slot])> {
        if least > budget {
            return None;
        }
        self.scratch.failed.clear();
        self.scratch.lay_out(self.graph, model);
        let least = (least..=budget).find(|&budget| self.is_enough(budget))?;
        Some((least, &self.scratch.order))
    }

    fn is_enough(&mut self, budget: u32) -> bool {
        let mut done = std::mem::take(&mut self.scratch.done);
        done.clear();
        done.resize(self.graph.threads(), 0);
        self.scratch.order.clear();
        let found = self.complete(&mut done, ThreadId::MAIN, budget);
        self.scratch.done = done;
        found
    }

    fn part(&self) -> Part<'_> {
        Part {
            graph: self.graph,
            ends: &self.scratch.ends,
        }
    }

    /// Completes the linearisation from the state that ends `done`, a stack of states, and leaves the
    /// stack as it was.
    fn complete(&mut self, done: &mut Vec<u32>, running: ThreadId, budget: u32) -> bool {
        let top = done.len() - self.graph.threads();
        let now = &mut done[top..];
        let scratch = &mut *self.scratch;
        while let Some(step) = scratch.ready(now, running).filter(|step| step.goes_first) {
            now[running.index()] = step.after;
            scratch.order.push(step.slot);
        }
        if now == &scratch.ends[..] {
            return true;
        }
        if scratch.gaps.left(now) > budget {
            return false;
        }
        if !scratch.failed.is_empty() {
            let failed = scratch.failed.get(&(scratch.key(now), running));
            if failed.is_some_and(|&failed| budget <= failed) {
                return false;
            }
        }
        let found = self.branch(done, running, budget);
        if !found {
            let key = (self.scratch.key(&done[top..]), running);
            self.scratch.failed.insert(key, budget);
        }
        found
    }

    /// Tries every thread that can go on, the running one first.
    fn branch(&mut self, done: &mut Vec<u32>, running: ThreadId, budget: u32) -> bool {
        let threads = self.graph.threads();
        let top = done.len() - threads;
        if let Some(step) = self.scratch.ready(&done[top..], running)
            && self.attempt(done, running, step, budget)
        {
            return true;
        }
        let price = u32::from(!self.part().leaves_freely(&done[top..], running));
        let Some(left) = budget.checked_sub(price) else {
            return false;
        };
        (0..threads as u32).map(ThreadId).any(|thread| {
            let step = self.scratch.ready(&done[top..], thread);
            let step = step.filter(|_| thread != running);
            step.is_some_and(|step| self.attempt(done, thread, step, left))
        })
    }

    /// Lets `thread` take `step` and goes on from there.
    fn attempt(&mut self, done: &mut Vec<u32>, thread: ThreadId, step: Step, budget: u32) -> bool {
        let top = done.len() - self.graph.threads();
        done.extend_from_within(top..);
        let after = done.len() - self.graph.threads();
        let placed = self.scratch.order.len();
        done[after + thread.index()] = step.after;
        self.scratch.order.push(step.slot);
        let found = self.complete(done, thread, budget);
        done.truncate(after);
        if !found {
            self.scratch.order.truncate(placed);
        }
        found
    }
}

impl Scratch {
    /// The next step of `thread`, if everything that comes before it is done.
    fn ready(&self, done: &[u32], thread: ThreadId) -> Option<Step> {
        let at = done[thread.index()];
        if at == self.ends[thread.index()] {
            return None;
        }
        let place = self.gaps.offsets[thread.index()] + at as usize;
        let before = &self.before[place * done.len()..][..done.len()];
        let ready = before.iter().zip(done).all(|(before, done)| done >= before);
        ready.then(|| self.steps[place])
    }

    /// Lays the operations out in a table.
    fn lay_out(&mut self, graph: &Graph, model: &impl Model) {
        let width = graph.threads();
        self.steps.clear();
        self.before.clear();
        for (own, &end) in self.ends.iter().enumerate() {
            let events = &graph.thread(ThreadId(own as u32))[..end as usize];
            for (at, &slot) in events.iter().enumerate() {
                let event = graph.event(slot);
                let row = self.before.len();
                let last = match event.kind {
                    Kind::WriteHalf => slot,
                    _ => operation_end(graph, slot),
                };
                let order = model.linear_order(graph, last).iter().zip(&self.ends);
                self.before
                    .extend(order.map(|(&before, &end)| before.min(end)));
                self.before[row + own] = 0;
                let after = at as u32 + 1 + u32::from(last != slot);
                // The last step of a thread ends the waiting of those that join it. If only one thread does,
                // that costs it no more than the preemption saved.
                let ends_waiting = after == end && self.gaps.joiners > 1;
                self.steps.push(Step {
                    slot,
                    after,
                    goes_first: !ends_waiting && goes_first(graph, &event.op),
                });
            }
            // Places are counted as in the table of gaps, which has one more for the end.
            self.before.resize(self.before.len() + width, 0);
            self.steps.push(Step {
                slot: 0,
                after: end,
                goes_first: false,
            });
        }
    }

    /// One number for how far each thread has come. It is exact as long as the product of the
    /// threads' lengths fits into 128 bits, and a hash of that many bits beyond.
    fn key(&self, done: &[u32]) -> u128 {
        done.iter()
            .zip(&self.ends)
            .fold(0, |key: u128, (&done, &end)| {
                key.wrapping_mul(u128::from(end) + 1)
                    .wrapping_add(u128::from(done))
            })
    }
}

/// Whether nobody's waiting depends on the operation, the joining of its thread aside.
pub(super) fn goes_first(graph: &Graph, op: &Op) -> bool {
    match *op {
        Op::Update {
            function: Function::Object(function),
            ..
        } => matches!(function, ObjectFunction::MutexLock { .. }),
        Op::Store { at, .. } => {
            let first = graph.reads(at).first().map(|&read| graph.event(read).op);
            !matches!(
                first,
                Some(Op::Update {
                    function: Function::Object(_),
                    ..
                })
            )
        }
        _ => true,
    }
}
