//! Linearizations: the orders in which the operations of a graph can be performed, and their preemptions.
//!
//! Preemption bounds and counterexamples are made of these. `steps.rs` says which step can come next, `greedy.rs` finds an
//! upper bound on the least number of preemptions, `forced.rs` a lower bound, `exact.rs` the number itself. All of them are
//! generic over the representation of a frontier (`frontier.rs`). `parts.rs` is for graphs of weak memory models that have
//! no linearization.

pub(crate) mod exact;
pub(crate) mod forced;
pub(crate) mod frontier;
pub(crate) mod greedy;
pub(crate) mod parts;
pub(crate) mod steps;

use crate::graph::{Clocks, Graph, INIT, Kind, LANES, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::{Effect, Op, Value};

/// How many blocks of [`LANES`] threads a frontier of `graph` takes.
pub(crate) fn blocks(graph: &Graph, clocks: &Clocks) -> usize {
    // A thread that was just created may have no place in the clocks yet.
    graph.threads().div_ceil(LANES).max(clocks.stride()).max(1)
}

/// Calls a function that is generic over the frontier's type with the one that `$graph` needs.
macro_rules! with_frontier {
    ($graph:expr, $clocks:expr, $function:ident :: <F>($($argument:expr),* $(,)?)) => {
        match $crate::linear::blocks($graph, $clocks) {
            1 => $function::<$crate::linear::frontier::Blocks<1>>($($argument),*),
            2 => $function::<$crate::linear::frontier::Blocks<2>>($($argument),*),
            _ => $function::<Box<[u32]>>($($argument),*),
        }
    };
}
pub(crate) use with_frontier;

/// The least number of preemptions of `graph` and a linearization that has no more, if that is within `budget`.
/// `ended` tells whether the execution has ended.
pub(crate) fn least_preemptions(
    graph: &Graph,
    clocks: &Clocks,
    ended: bool,
    budget: u32,
) -> Option<(u32, Vec<greedy::Run>)> {
    fn least<F: frontier::Frontier>(
        graph: &Graph,
        clocks: &Clocks,
        ended: bool,
        budget: u32,
    ) -> Option<(u32, Vec<greedy::Run>)> {
        let steps = match ended {
            true => steps::Steps::<F>::ended(graph, clocks),
            false => steps::Steps::all(graph, clocks),
        };
        let mut runs = Vec::new();
        let number = exact::least(&steps, budget, &mut runs)?;
        Some((number, runs))
    }
    with_frontier!(graph, clocks, least::<F>(graph, clocks, ended, budget))
}

/// The write half of an update that writes, otherwise the event itself.
pub(crate) fn operation_end(graph: &Graph, slot: Slot) -> Slot {
    let event = graph.event(slot);
    match event.kind {
        Kind::ReadHalf => graph.thread(event.id.thread)[event.id.index as usize + 1],
        _ => slot,
    }
}

/// The read half of an update that writes, otherwise the event itself.
pub(crate) fn operation_begin(graph: &Graph, slot: Slot) -> Slot {
    let event = graph.event(slot);
    match event.kind {
        Kind::WriteHalf => graph.thread(event.id.thread)[event.id.index as usize - 1],
        _ => slot,
    }
}

/// The part of a graph that consists of the first `ends[t]` events of each thread *t*.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) graph: &'a Graph,
    pub(crate) ends: &'a [u32],
}

impl Part<'_> {
    /// The first event of the next operation of `thread`.
    pub(crate) fn next(self, done: &[u32], thread: ThreadId) -> Option<Slot> {
        let at = done[thread.index()];
        let left = at < self.ends[thread.index()];
        left.then(|| self.graph.thread(thread)[at as usize])
    }

    /// Counts the operation that begins at `slot` as done.
    pub(crate) fn perform(self, done: &mut [u32], slot: Slot) {
        let id = self.graph.event(operation_end(self.graph, slot)).id;
        done[id.thread.index()] = id.index + 1;
    }

    /// Whether the operation at `slot` could not be performed at this point.
    pub(crate) fn waits(self, done: &[u32], slot: Slot) -> bool {
        let event = self.graph.event(slot);
        let unfinished = |thread: ThreadId| self.next(done, thread).is_some();
        match event.op {
            Op::Join { child } => unfinished(child),
            Op::JoinAll => (0..done.len() as u32)
                .map(ThreadId)
                .any(|other| other != event.id.thread && unfinished(other)),
            Op::Update { at, function, .. } if function.can_block() => self
                .value(done, at)
                .is_some_and(|value| function.apply(value) == Effect::Block),
            _ => false,
        }
    }

    /// The value of the location at this point, if an event tells.
    fn value(self, done: &[u32], location: Location) -> Option<Value> {
        let mut writes = self.graph.coherence(location).iter().rev();
        match writes.find(|&&write| self.graph.counted(done, write)) {
            Some(&write) => Some(self.graph.event(write).wrote),
            None => {
                let mut readers = self.graph.readers(location, INIT);
                readers.next().map(|reader| self.graph.event(reader).read)
            }
        }
    }
}
