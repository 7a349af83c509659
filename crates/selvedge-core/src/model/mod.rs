//! Memory models: which graphs are consistent.
//!
//! The search asks a model two things: how far back a thread may look, and what happens before what.
//! A model keeps whatever it needs to answer in step with the graph.

mod sc;

pub use sc::SequentialConsistency;

use crate::graph::{Graph, Slot};
use crate::ids::Location;

/// A memory model, kept in step with one graph.
pub trait Model: Default {
    /// Forgets the graph.
    fn clear(&mut self);

    /// The oldest position in the coherence order of `location` (0 is the initial write) that an
    /// event right after `predecessor` may read, or may write directly after. Every later
    /// position is possible too.
    fn oldest(&self, graph: &Graph, predecessor: Option<Slot>, location: Location) -> usize;

    /// The event in `slot`, the last one, was added.
    fn added(&mut self, graph: &Graph, slot: Slot);

    /// Only the first `events` events remain. Called while the graph still has them all.
    fn undo(&mut self, events: usize);

    /// The graph was made anew; the event in `unbound` has no source yet and is the last of its
    /// thread.
    fn rebuild(&mut self, graph: &Graph, unbound: Slot);

    /// The event in `slot`, unbound until now, was given a source.
    fn bound(&mut self, graph: &Graph, slot: Slot);

    /// Of each thread, how many events come before the event in `slot`, itself included, in every
    /// linearisation of the graph.
    fn linear_order(&self, slot: Slot) -> &[u32];

    /// Of each thread, how many events happen before the event in `slot`, itself included.
    fn happens_before<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32];
}
