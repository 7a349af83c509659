//! Preemptions of graphs that have no linearization. Weak memory models allow such graphs.
//!
//! A *part* of a graph is a set of its operations that contains the causes of each of them. The number of preemptions of a
//! graph is the largest number among its parts that have linearizations; the number of such a part is the least over its
//! linearizations. For a graph that has linearizations this is its own number, because no part needs more. The number is
//! monotone: a part of a graph has no larger number than the graph. (Counting only orders that respect causality would give
//! another number for most graphs of sequential consistency. Dropping the edges on cycles would not be monotone.)
//!
//! Only the largest parts that have linearizations have to be examined. Each of them leaves out some operation of every
//! cycle, and everything that this operation causes. So for each cycle the operations that cause no other operation of the
//! cycle are tried in turn.

use rustc_hash::FxHashSet;

use super::{Part, least_preemptions, operation_begin};
use crate::graph::{Graph, INIT, Slot};
use crate::ids::ThreadId;
use crate::model::{Model, SequentialConsistency};
use crate::op::Op;

/// The order of sequential consistency of a graph of a weaker model, kept up to date as long as the graph has one.
#[derive(Default)]
pub(crate) struct ScOverlay {
    pub(crate) order: SequentialConsistency,
    /// How many events it has. If these are not all, the next one closes a cycle.
    events: usize,
}

impl ScOverlay {
    pub(crate) fn clear(&mut self) {
        self.order.clear();
        self.events = 0;
    }

    /// Whether `graph` has linearizations, and the order is theirs.
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
            // Events that were not added at the end of the graph are never taken back one by one.
            false => 0,
        };
    }
}

/// The search through the parts of a graph, kept for its allocations.
#[derive(Default)]
pub(crate) struct Parts {
    part: Graph,
    order: SequentialConsistency,
    done: Vec<u32>,
    /// Parts that remain to be examined, as numbers of events of each thread.
    left: Vec<Vec<u32>>,
    seen: FxHashSet<Vec<u32>>,
    /// Parts within the budget.
    known: Vec<Vec<u32>>,
    /// Threads, each with an event of the next one, which waits for the first, that its next event waits for.
    waiting: Vec<(ThreadId, Slot)>,
}

impl Parts {
    /// Whether the part of `graph` that consists of the first `ends[t]` events of each thread *t* has at most `budget`
    /// preemptions.
    pub(crate) fn are_within(&mut self, graph: &Graph, ends: &[u32], budget: u32) -> bool {
        self.left.clear();
        self.seen.clear();
        self.known.clear();
        self.left.push(ends[..graph.threads()].to_vec());
        while let Some(ends) = self.left.pop() {
            if self.known.iter().any(|known| is_within(&ends, known)) {
                continue;
            }
            let part = Part { graph, ends: &ends };
            if self.has_cycle(part) {
                self.cut(part);
                continue;
            }
            self.part.restrict_to(graph, &ends);
            let linear = self.order.rebuild_if_consistent(&self.part);
            debug_assert!(linear, "there is no cycle");
            let clocks = self.order.clocks();
            if least_preemptions(&self.part, clocks, false, budget).is_none() {
                return false;
            }
            self.known.push(ends);
        }
        true
    }

    /// Puts what is left of `part`, which has a cycle, for each way to open it on the list.
    fn cut(&mut self, part: Part<'_>) {
        self.find_cycle(part);
        let graph = part.graph;
        for &(_, last) in &self.waiting {
            let causes_another = self
                .waiting
                .iter()
                .any(|&(_, other)| other != last && graph.counted(graph.causality(other), last));
            if causes_another {
                continue;
            }
            let smaller = without(part, operation_begin(graph, last));
            if !self.seen.contains(&smaller) {
                self.seen.insert(smaller.clone());
                self.left.push(smaller);
            }
        }
    }

    /// Counts what comes before all cycles of `part`. Whether that is not all.
    fn has_cycle(&mut self, part: Part<'_>) -> bool {
        self.done.clear();
        self.done.resize(part.ends.len(), 0);
        let mut progress = true;
        while std::mem::take(&mut progress) {
            for thread in 0..part.ends.len() {
                while let Some(slot) = part.next(&self.done, ThreadId(thread as u32))
                    && missed(part, &self.done, slot).is_none()
                {
                    self.done[thread] += 1;
                    progress = true;
                }
            }
        }
        self.done != part.ends
    }

    /// Goes from one thread that cannot go on to the next, which it waits for, until one is met again.
    fn find_cycle(&mut self, part: Part<'_>) {
        self.waiting.clear();
        let mut threads = (0..part.ends.len() as u32).map(ThreadId);
        let mut next = threads.find(|&thread| part.next(&self.done, thread).is_some());
        while let Some(thread) = next {
            if let Some(first) = self.waiting.iter().position(|&(other, _)| other == thread) {
                self.waiting.drain(..first);
                return;
            }
            let slot = part.next(&self.done, thread);
            let missed = slot.and_then(|slot| missed(part, &self.done, slot));
            let missed = missed.expect("what cannot go on waits for something");
            self.waiting.push((thread, missed));
            next = Some(part.graph.event(missed).id.thread);
        }
    }
}

/// The rest of `part` without the event in `slot` and all that it causes.
fn without(part: Part<'_>, slot: Slot) -> Vec<u32> {
    let graph = part.graph;
    let kept = |(thread, &end): (usize, &u32)| {
        let events = &graph.thread(ThreadId(thread as u32))[..end as usize];
        events.partition_point(|&event| !graph.counted(graph.causality(event), slot)) as u32
    };
    part.ends.iter().enumerate().map(kept).collect()
}

/// Some event of `part` that has to come before the one in `slot`, the next one of its thread, and is not done.
fn missed(part: Part<'_>, done: &[u32], slot: Slot) -> Option<Slot> {
    let graph = part.graph;
    let event = graph.event(slot);
    let left = |&other: &Slot| {
        other != INIT && graph.counted(part.ends, other) && !graph.counted(done, other)
    };
    if event.id.index == 0
        && let Some(creation) = graph.predecessor(event.id).filter(left)
    {
        return Some(creation);
    }
    let last = |thread| graph.thread(thread).last().copied().filter(left);
    match event.op {
        Op::Join { child } => return last(child),
        Op::JoinAll => {
            let others = (0..part.ends.len() as u32).map(ThreadId);
            return others
                .filter(|&other| other != event.id.thread)
                .find_map(last);
        }
        _ => {}
    }
    let location = event.op.location()?;
    if event.kind.reads() {
        return Some(event.source).filter(left);
    }
    // Writes that are not part of it have no readers that are.
    let before = &graph.coherence(location)[..graph.position(location, slot) - 1];
    let overwritten = before
        .iter()
        .rfind(|&&write| graph.counted(part.ends, write));
    let overwritten = overwritten.copied().unwrap_or(INIT);
    let mut readers = graph.readers(location, overwritten);
    Some(overwritten)
        .filter(left)
        .or_else(|| readers.find(left))
}

fn is_within(one: &[u32], other: &[u32]) -> bool {
    one.iter().zip(other).all(|(one, other)| one <= other)
}
