//! Memory models: which graphs are consistent.
//!
//! The search asks a model two things: how far back a thread may look, and what happens before what.
//! A model keeps the data for its answers in step with the graph.

mod kinds;
mod psc;
mod ra;
mod rc11;
mod sc;
mod tso;

pub use kinds::MemoryModel;
pub use ra::ReleaseAcquire;
pub use rc11::Rc11;
pub use sc::SequentialConsistency;
pub use tso::TotalStoreOrder;

use crate::graph::{Graph, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::{MemoryOrder, Op};

/// An access that is about to be added to a graph, or to be given a new source.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The thread that performs it.
    pub thread: ThreadId,
    /// The event right before it: the last one of its thread, or the thread's creation.
    pub predecessor: Option<Slot>,
    /// The location that is read or written.
    pub location: Location,
    /// The operation it is part of.
    pub op: Op,
    /// The part of it.
    pub kind: Kind,
}

impl Access {
    /// The order it is performed with.
    pub fn order(&self) -> MemoryOrder {
        order(&self.op, self.kind)
    }
}

/// The order that is written at an event.
pub fn order(op: &Op, kind: Kind) -> MemoryOrder {
    match *op {
        Op::Load { order, .. } | Op::Store { order, .. } | Op::Fence { order } => order,
        Op::Update { order, failure, .. } => match kind {
            Kind::ReadHalf | Kind::WriteHalf => order,
            _ => failure,
        },
        Op::Create { .. } | Op::Join { .. } | Op::JoinAll | Op::Choose { .. } => {
            MemoryOrder::Relaxed
        }
    }
}

/// Calls `visit` for every event of `graph` but `unbound`, each after its causes.
fn in_causal_order(
    graph: &Graph,
    unbound: Option<Slot>,
    done: &mut Vec<u32>,
    mut visit: impl FnMut(Slot),
) {
    done.clear();
    done.resize(graph.threads(), 0);
    let mut left = graph.len() - usize::from(unbound.is_some());
    while left > 0 {
        let before = left;
        for thread in 0..graph.threads() {
            let events = graph.thread(ThreadId(thread as u32));
            while let Some(&slot) = events.get(done[thread] as usize) {
                if Some(slot) == unbound || !graph.causes_counted(done, slot) {
                    break;
                }
                visit(slot);
                done[thread] += 1;
                left -= 1;
            }
        }
        assert!(left < before, "causality has no cycle");
    }
}

/// A memory model, kept in step with one graph.
pub trait Model: Default {
    /// Forgets the graph.
    fn clear(&mut self);

    /// The oldest position in the coherence order of its location (0 is the initial write) that
    /// `access` may read, or may write directly after. Every later position is possible too: a
    /// model for which that is not so does not fit this search.
    fn oldest(&mut self, graph: &Graph, access: &Access) -> usize;

    /// The event in `slot`, the last one, was added.
    fn added(&mut self, graph: &Graph, slot: Slot);

    /// Only the first `events` events remain. Called while the graph still has them all.
    fn undo(&mut self, events: usize);

    /// The graph was made anew. The event in `unbound`, if there is one, has no source yet and is the
    /// last of its thread.
    fn rebuild(&mut self, graph: &Graph, unbound: Option<Slot>);

    /// The event in `slot`, unbound until now, was given a source.
    fn bound(&mut self, graph: &Graph, slot: Slot);

    /// Of each thread, how many events come before the event in `slot`, itself included, in every
    /// linearisation of the graph. Causality for weak models: not all of their graphs have a
    /// linearisation in which each read sees the newest write.
    fn linear_order<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32] {
        graph.causality(slot)
    }

    /// The order of sequential consistency, from a model that keeps it.
    fn sequential(&self) -> Option<&SequentialConsistency> {
        None
    }

    /// Of each thread, how many events happen before the event in `slot`, itself included.
    fn happens_before<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32];
}
