//! Preemptions of graphs that have no linearisation, which weak memory models allow.
//!
//! A *part* of a graph is a set of its operations that has the causes of each of them. The number of preemptions of a graph
//! is the largest among its parts that have linearisations, of which each has the least number over these. That is
//! the number of the graph itself where it has linearisations, since no part of it needs more then; and what is part
//! of a graph has no larger number than the graph. (A number that only counted the orders which respect causality would
//! be another one on most graphs of sequential consistency; dropping the edges on cycles would not be monotone.)
//!
//! Only the largest of these parts have to be looked at. Each leaves out some operation of every cycle, and with
//! it all that it causes, so the last ones in a cycle, as far as causes tell, are tried in turn.

use rustc_hash::FxHashSet;

use super::line::Line;
use super::search::{Linear, Scratch};
use super::{operation_begin, performed_events};
use crate::graph::{Graph, Slot};
use crate::ids::ThreadId;
use crate::model::{Model, SequentialConsistency};

/// The order of sequential consistency, kept in step with a graph of a weaker model as long as it has one.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) order: SequentialConsistency,
    /// How many events it has. If these are not all, the next one closes a cycle.
    events: usize,
}

impl Beside {
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.events = 0;
    }

    /// Whether `graph` has linearisations, and the order is theirs.
    pub(crate) fn is_whole(&self, graph: &Graph) -> bool {
        self.events == graph.len()
    }

    /// The event in `slot`, the last one, was added.
    pub(crate) fn added(&mut self, graph: &Graph, slot: Slot) {
        if self.events == slot as usize && self.order.added_unless_cyclic(graph, slot) {
            self.events += 1;
        }
    }

    /// Only the first `events` events remain.
    pub(crate) fn undo(&mut self, events: usize) {
        if events < self.events {
            self.order.undo(events);
            self.events = events;
        }
    }

    /// The graph was made anew.
    pub(crate) fn rebuild(&mut self, graph: &Graph) {
        self.events = match self.order.rebuild_if_consistent(graph) {
            true => graph.len(),
            // What was added to the graph in other places than its end is never taken back one by one.
            false => 0,
        };
    }
}

/// The search through the parts of a graph, kept for its memory.
#[derive(Default)]
pub(crate) struct Parts {
    part: Graph,
    order: SequentialConsistency,
    scratch: Scratch,
    line: Line,
    /// As many events of each thread.
    left: Vec<Vec<u32>>,
    seen: FxHashSet<Vec<u32>>,
    /// Those that have linearisations.
    known: Vec<Vec<u32>>,
    /// Threads, each with an event of the next one, which waits for the first, that its next event waits for.
    waiting: Vec<(ThreadId, Slot)>,
}

impl Parts {
    /// If the number of preemptions of `graph` is larger than `budget`, a number that it has at least.
    pub(crate) fn exceed(&mut self, graph: &Graph, budget: u32) -> Option<u32> {
        self.left.clear();
        self.seen.clear();
        self.known.clear();
        let mut whole = Vec::new();
        performed_events(graph, &mut whole);
        self.left.push(whole);
        while let Some(ends) = self.left.pop() {
            if self.known.iter().any(|known| is_within(&ends, known)) {
                continue;
            }
            self.part.restrict_to(graph, &ends);
            if !self.order.rebuild_if_consistent(&self.part) {
                self.cut(&ends);
                continue;
            }
            if let Some(least) = self.part_exceeds(budget) {
                return Some(least);
            }
            self.known.push(ends);
        }
        None
    }

    fn part_exceeds(&mut self, budget: u32) -> Option<u32> {
        let mut linear = Linear::new(&self.part, &self.order, &mut self.scratch);
        let least = linear.at_least();
        if least > budget {
            return Some(least);
        }
        self.line.lay(&self.part, &self.order);
        let ends = &mut self.scratch.ends;
        if self.line.counts_within(&self.part, ends, budget) {
            return None;
        }
        linear = Linear::new(&self.part, &self.order, &mut self.scratch);
        match linear.search(&self.order, budget) {
            Some(_) => None,
            None => Some(budget + 1),
        }
    }

    /// Puts what is left of the present part, which has a cycle, for each way to open it on the list.
    fn cut(&mut self, ends: &[u32]) {
        self.find_cycle();
        let cycle = std::mem::take(&mut self.waiting);
        for &(_, last) in &cycle {
            let causes_another = cycle.iter().any(|&(_, other)| {
                other != last && self.part.counted(self.part.causality(other), last)
            });
            if causes_another {
                continue;
            }
            let smaller = self.without(ends, operation_begin(&self.part, last));
            if !self.seen.contains(&smaller) {
                self.seen.insert(smaller.clone());
                self.left.push(smaller);
            }
        }
        self.waiting = cycle;
    }

    /// What is left of `ends` without the event in `slot` and all that it causes.
    fn without(&self, ends: &[u32], slot: Slot) -> Vec<u32> {
        let part = &self.part;
        let kept = |(thread, &end): (usize, &u32)| {
            let events = &part.thread(ThreadId(thread as u32))[..end as usize];
            events.partition_point(|&event| !part.counted(part.causality(event), slot)) as u32
        };
        ends.iter().enumerate().map(kept).collect()
    }

    /// Goes from one thread that cannot go on to the next, which it waits for, until one is met again.
    fn find_cycle(&mut self) {
        self.waiting.clear();
        let done = self.order.before_cycles();
        let unfinished =
            |&thread: &ThreadId| (done[thread.index()] as usize) < self.part.thread(thread).len();
        let mut threads = (0..self.part.threads() as u32).map(ThreadId);
        let mut next = threads.find(unfinished);
        while let Some(thread) = next {
            if let Some(first) = self.waiting.iter().position(|&(other, _)| other == thread) {
                self.waiting.drain(..first);
                return;
            }
            let missed = self.order.missed(&self.part, thread);
            let missed = missed.expect("what cannot go on waits for something");
            self.waiting.push((thread, missed));
            next = Some(self.part.event(missed).id.thread);
        }
    }
}

fn is_within(one: &[u32], other: &[u32]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other)
}
