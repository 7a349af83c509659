//! Release-acquire: every access is a release or an acquire, whatever order is written, and fences do
//! nothing. For each location *x*, program order, reads-from, the coherence order of *x* and the
//! from-reads of *x* together have no cycle (Lahav, Giannarakis and Vafeiadis, "Taming
//! release-acquire consistency", POPL 2016, §3).
//!
//! Happens-before is causality, which the graph keeps anyway, so the model has no state. An event
//! may read or follow a write *w* iff nothing that was written over *w* happens before
//! it: a thread that read such a write has that write in its causes too.

use super::{Access, Model};
use crate::graph::{Graph, Slot};

/// The model `ra`.
#[derive(Clone, Debug, Default)]
pub struct ReleaseAcquire;

impl Model for ReleaseAcquire {
    fn clear(&mut self) {}

    fn oldest(&mut self, graph: &Graph, access: &Access) -> usize {
        let Some(predecessor) = access.predecessor else {
            return 0;
        };
        let before = graph.causality(predecessor);
        let mut writes = graph.coherence(access.location).iter();
        let seen = writes.rposition(|&write| graph.counted(before, write));
        seen.map_or(0, |index| index + 1)
    }

    fn added(&mut self, _graph: &Graph, _slot: Slot) {}

    fn undo(&mut self, _events: usize) {}

    fn rebuild(&mut self, _graph: &Graph, _unbound: Option<Slot>) {}

    fn bound(&mut self, _graph: &Graph, _slot: Slot) {}

    fn happens_before<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32] {
        graph.causality(slot)
    }
}
