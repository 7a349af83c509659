//! The least number of preemptions over all linearizations of a graph (Marmanis et al., "Reconciling Preemption Bounding
//! with DPOR", §3.1 and §5).
//!
//! Leaving a thread is a preemption if it has a further event in the graph and does not have to wait there. Main runs
//! first. Whether a number of preemptions is enough is NP-complete to decide, so this is a search: depth first over
//! (frontier, running thread). It remembers with which budget a state failed, gives up where the forced switches that
//! remain exceed the budget, and lets the running thread go on wherever that cannot be wrong. To find the least number it
//! begins with the lower bound as its budget, which is nearly always enough.

use rustc_hash::FxHashMap;

use super::forced::ForcedSwitches;
use super::frontier::Frontier;
use super::greedy::Run;
use super::steps::{Steps, has_objects, is_object};
use crate::graph::Graph;
use crate::objects::ObjectFunction;
use crate::op::{Function, Op};

/// The least number of preemptions of `steps`, if it is at most `budget`. `runs` is a linearization with that number then.
pub(crate) fn least<F: Frontier>(
    steps: &Steps<'_, F>,
    budget: u32,
    runs: &mut Vec<Run>,
) -> Option<u32> {
    search(steps, |lowest| lowest, budget, runs)
}

/// Whether `budget` preemptions are enough for `steps`.
pub(crate) fn is_within<F: Frontier>(
    steps: &Steps<'_, F>,
    budget: u32,
    runs: &mut Vec<Run>,
) -> bool {
    search(steps, |lowest| lowest.max(budget), budget, runs).is_some()
}

/// The smallest budget that is enough, of those up to `budget` that are no less than `first`, which is given a lower bound.
fn search<F: Frontier>(
    steps: &Steps<'_, F>,
    first: impl Fn(u32) -> u32,
    budget: u32,
    runs: &mut Vec<Run>,
) -> Option<u32> {
    let mut forced = ForcedSwitches::default();
    forced.measure_remaining(steps);
    let start = steps.start();
    let lowest = first(forced.remaining(steps, &start));
    let mut search = Search {
        steps,
        forced,
        failed: FxHashMap::default(),
        runs,
        plain: !has_objects(steps.graph) && joiners(steps) <= 1,
    };
    (lowest..=budget).find(|&budget| {
        search.runs.clear();
        search.complete(start.clone(), 0, budget)
    })
}

struct Search<'s, 'a, F> {
    steps: &'s Steps<'a, F>,
    forced: ForcedSwitches,
    /// The largest budget that a state failed with.
    failed: FxHashMap<(F, usize), u32>,
    runs: &'s mut Vec<Run>,
    /// Whether no step of one thread ends the waiting of another one, main's joins aside.
    plain: bool,
}

impl<F: Frontier> Search<'_, '_, F> {
    /// Whether `budget` preemptions are enough for what is left if `running` goes on first.
    fn complete(&mut self, mut done: F, running: usize, budget: u32) -> bool {
        let placed = self.runs.len();
        self.go_on(&mut done, running);
        let steps = self.steps;
        let mut threads = 0..steps.threads();
        if threads.all(|thread| done.get(thread) >= steps.ends.get(thread)) {
            return true;
        }
        let key = (done, running);
        let failed = || {
            self.failed
                .get(&key)
                .is_some_and(|&failed| budget <= failed)
        };
        if self.forced.remaining(steps, &key.0) > budget || failed() {
            self.runs.truncate(placed);
            return false;
        }
        let found = self.branch(&key.0, running, budget);
        if !found {
            self.runs.truncate(placed);
            self.failed.insert(key, budget);
        }
        found
    }

    /// Lets `thread` take the steps that it loses nothing by taking at once.
    fn go_on(&mut self, done: &mut F, thread: usize) {
        let from = done.get(thread);
        if from >= self.steps.ends.get(thread) {
            return;
        }
        let mut to = from;
        if self.plain {
            to = self.steps.run(done, thread, from as usize).0;
            self.steps.perform(done, thread, to);
        } else {
            while let Some((first, next)) = self.steps.next(done, thread)
                && goes_first(self.steps.graph, &self.steps.graph.event(first).op)
                && next != self.steps.ends.get(thread)
            {
                to = next;
                self.steps.perform(done, thread, to);
            }
        }
        self.place(thread, from, to);
    }

    /// Tries every thread that can go on, the running one first.
    fn branch(&mut self, done: &F, running: usize, budget: u32) -> bool {
        if self.attempt(done, running, budget) {
            return true;
        }
        let price = u32::from(!self.steps.leaves_freely(done, running));
        let Some(left) = budget.checked_sub(price) else {
            return false;
        };
        let others = (0..self.steps.threads()).filter(|&thread| thread != running);
        others
            .into_iter()
            .any(|thread| self.attempt(done, thread, left))
    }

    /// Lets `thread` take its next step, if it can, and goes on from there.
    fn attempt(&mut self, done: &F, thread: usize, budget: u32) -> bool {
        let mut after = done.clone();
        let Some((_, to)) = self.steps.next(&mut after, thread) else {
            return false;
        };
        let placed = self.runs.len();
        let from = after.get(thread);
        self.steps.perform(&mut after, thread, to);
        self.place(thread, from, to);
        let found = self.complete(after, thread, budget);
        if !found {
            self.runs.truncate(placed);
        }
        found
    }

    fn place(&mut self, thread: usize, from: u32, to: u32) {
        if to > from {
            let thread = crate::ids::ThreadId(thread as u32);
            self.runs.push(Run { thread, from, to });
        }
    }
}

/// How many threads join others.
fn joiners<F: Frontier>(steps: &Steps<'_, F>) -> usize {
    let joins = |&slot: &_| {
        let op = steps.graph.event(slot).op;
        matches!(op, Op::Join { .. } | Op::JoinAll)
    };
    let threads = 0..steps.threads();
    threads
        .filter(|&thread| steps.events(thread).iter().any(joins))
        .count()
}

/// Whether the operation ends no wait, apart from a join of its thread.
fn goes_first(graph: &Graph, op: &Op) -> bool {
    match *op {
        Op::Update {
            function: Function::Object(function),
            ..
        } => matches!(function, ObjectFunction::MutexLock { .. }),
        Op::Store { at, .. } => !is_object(graph, at),
        _ => true,
    }
}
