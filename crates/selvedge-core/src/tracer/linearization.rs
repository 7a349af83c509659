//! Linearizations of a trace: total orders in which each read reads the latest write.

use super::sc::write_of;
use crate::graph::{Graph, INIT, Slot};
use crate::ids::ThreadId;

/// A linearization under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Linearization {
    /// The number of events of each thread that it contains.
    done: Vec<u32>,
    /// The latest write of each location.
    newest: Vec<Slot>,
    /// The position of each event.
    pub(super) ranks: Vec<u64>,
}

impl Linearization {
    pub(super) fn start(&mut self, graph: &Graph) {
        self.done.clear();
        self.done.resize(graph.threads(), 0);
        let locations = graph.locations().iter();
        let locations = locations.map(|at| at.index() + 1).max().unwrap_or(0);
        self.newest.clear();
        self.newest.resize(locations, INIT);
        self.ranks.clear();
        self.ranks.resize(graph.len(), 0);
    }

    /// The next operation of `thread` that it does not contain.
    pub(super) fn next(&self, graph: &Graph, thread: ThreadId) -> Option<Slot> {
        let at = self.done[thread.index()] as usize;
        graph.thread(thread).get(at).copied()
    }

    /// Whether the operation in `slot`, preceded by `clock`, can come next.
    pub(super) fn ready(&self, graph: &Graph, slot: Slot, clock: &[u32]) -> bool {
        let event = graph.event(slot);
        let own = event.id.thread.index();
        let known = clock.iter().zip(&self.done).enumerate();
        if known
            .into_iter()
            .any(|(thread, (counted, done))| thread != own && counted > done)
        {
            return false;
        }
        let Some(at) = event.op.location() else {
            return true;
        };
        let newest = self.newest[at.index()];
        if event.kind.reads() && event.source != newest {
            return false;
        }
        // All reads of the previous write come before a new one.
        write_of(graph, slot).is_none()
            || graph
                .readers(at, newest)
                .all(|reader| reader == slot || graph.counted(&self.done, reader))
    }

    /// Appends the operation in `slot`.
    pub(super) fn append(&mut self, graph: &Graph, slot: Slot, rank: &mut u64) {
        let event = graph.event(slot);
        let last = write_of(graph, slot);
        if let (Some(write), Some(at)) = (last, event.op.location()) {
            self.newest[at.index()] = write;
        }
        let last = last.unwrap_or(slot);
        for slot in slot..=last {
            self.ranks[slot as usize] = *rank;
            *rank += 1;
        }
        self.done[event.id.thread.index()] = graph.event(last).id.index + 1;
    }
}
