//! Consistency of traces without a total coherence order.

use crate::graph::{Graph, Slot};
use crate::ids::{Location, ThreadId};

/// The write that is last in the coherence order of a location, or [`INIT`](crate::graph::INIT).
pub(super) type Newest = (Location, Slot);

/// Decides, in step with a growing graph, whether its program order and reads-from are consistent:
/// whether some coherence order goes with them. The coherence order of the graph itself is ignored;
/// it is the order in which writes were added.
pub trait Consistency: Default {
    /// Fills `sources` with the writes of `at`, oldest first, that the next event of `thread` may
    /// read: the paper's readable writes. This is a quick over-approximation;
    /// [`added`](Consistency::added) decides.
    fn sources(&mut self, graph: &Graph, thread: ThreadId, at: Location, sources: &mut Vec<Slot>);

    /// Adds the event in `slot`, the last one. False if the graph is not consistent any more; the
    /// caller then removes the event. For an update that writes, the answer may come only with its
    /// write half.
    fn added(&mut self, graph: &Graph, slot: Slot) -> bool;

    /// Removes all but the first `events` events. Called while the graph still has them all.
    fn undo(&mut self, graph: &Graph, events: usize);

    /// The write of `at` that is last in every coherence order, if there is one.
    fn newest(&self, graph: &Graph, at: Location) -> Option<Slot>;

    /// Coherence orders of all locations that make the graph consistent and in which the writes
    /// `newest` are last; `None` if there are none.
    fn orders(&mut self, graph: &Graph, newest: &[Newest]) -> Option<Vec<(Location, Vec<Slot>)>>;
}
