//! Which traces without a coherence order can be given one.

use crate::graph::{Graph, Slot};
use crate::ids::{Location, ThreadId};

/// The newest write of a location, or [`INIT`](crate::graph::INIT).
pub(super) type Newest = (Location, Slot);

/// Decides, in step with a growing graph, whether its program order and reads-from are
/// consistent. The coherence order of the graph itself means nothing here: it is the order of
/// addition.
pub trait Consistency: Default {
    /// Fills `sources` with the writes of `at`, oldest first, that the next event of `thread` may
    /// read as far as can be told quickly: [`added`](Consistency::added) may still say no.
    fn sources(&mut self, graph: &Graph, thread: ThreadId, at: Location, sources: &mut Vec<Slot>);

    /// The event in `slot`, the last one, was added. Answers whether the graph is still consistent;
    /// if it is not, the event has to be taken back. The answer for an update that writes comes
    /// with its write half at the latest.
    fn added(&mut self, graph: &Graph, slot: Slot) -> bool;

    /// Only the first `events` events remain. Called while the graph still has them all.
    fn undo(&mut self, graph: &Graph, events: usize);

    /// The write of `at` that comes last in every coherence order, if there is one.
    fn newest(&self, graph: &Graph, at: Location) -> Option<Slot>;

    /// Coherence orders of all locations that make the graph consistent, with the given writes
    /// last in theirs; `None` if there are none.
    fn orders(&mut self, graph: &Graph, newest: &[Newest]) -> Option<Vec<(Location, Vec<Slot>)>>;
}
