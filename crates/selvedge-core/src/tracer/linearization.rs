//! Putting the operations of a trace into an order in which memory behaves.

use super::sc::write_of;
use crate::graph::{Graph, INIT, Slot};
use crate::ids::ThreadId;

/// An order that is being put together.
#[derive(Clone, Debug, Default)]
pub(super) struct Linearization {
    /// Of each thread, how many events are in it.
    done: Vec<u32>,
    /// What each location holds, by the write.
    newest: Vec<Slot>,
    /// The place of each event.
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

    /// The next operation of `thread`.
    pub(super) fn next(&self, graph: &Graph, thread: ThreadId) -> Option<Slot> {
        let at = self.done[thread.index()] as usize;
        graph.thread(thread).get(at).copied()
    }

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
        // Nobody may be left who still has to read what a write replaces.
        write_of(graph, slot).is_none()
            || graph
                .readers(at, newest)
                .all(|reader| reader == slot || graph.counted(&self.done, reader))
    }

    pub(super) fn perform(&mut self, graph: &Graph, slot: Slot, rank: &mut u64) {
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
