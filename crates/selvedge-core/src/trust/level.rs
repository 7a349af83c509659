//! The graph of one nested revisit, and its untried alternatives.

use super::branch::Branch;
use crate::graph::{Event, Graph, Slot};
use crate::ids::{Location, ThreadId};
use crate::linear::parts::ScOverlay;
use crate::model::Model;
use crate::op::Value;

/// A graph that grows, and what is still to be tried with it.
#[derive(Default)]
pub(super) struct Level<C> {
    pub(super) graph: Graph,
    pub(super) model: C,
    pub(super) choices: Vec<Choice>,
    /// Counts the events of `graph` that no revisit can delete any more.
    pub(super) stable: Vec<u32>,
    /// Whether preemptions are bounded. If not, `overlay` stays empty.
    pub(super) bounded: bool,
    /// The order of linearizations, if the model does not have it itself.
    pub(super) overlay: ScOverlay,
}

/// Untried alternatives to the event that was added when the graph had `events` events.
pub(super) struct Choice {
    pub(super) events: usize,
    pub(super) branch: Branch,
    /// The part of the search tree that these alternatives are taken to be.
    pub(super) share: f64,
}

impl<C: Model> Level<C> {
    /// `thread` spins since its event `since` and touches nothing else. If that is the read whose
    /// other sources are to be tried next, those with the same value will not help. Returns the value if the
    /// iteration is a single read.
    pub(super) fn note_futile(&mut self, thread: ThreadId, since: u32) -> Option<Value> {
        let own = self.graph.thread(thread);
        let &read = own.last().filter(|_| own.len() == since as usize + 1)?;
        let value = self.graph.event(read).read;
        if let Some(Choice { events, branch, .. }) = self.choices.last_mut()
            && *events == read as usize
            && let Branch::Read(branch) = branch
            && branch.thread == thread
        {
            branch.spins_at(value);
        }
        Some(value)
    }

    pub(super) fn clear(&mut self) {
        self.graph.clear();
        self.model.clear();
        self.choices.clear();
        self.stable.clear();
        self.overlay.clear();
    }

    pub(super) fn undo(&mut self, events: usize) {
        self.model.undo(events);
        if self.bounded {
            self.overlay.undo(events);
        }
        while self.graph.len() > events {
            self.graph.pop();
        }
    }

    pub(super) fn push_write(&mut self, event: Event, at: Location, position: usize) {
        let slot = self.graph.push_write(at, event, position);
        self.added(slot);
    }

    /// The event in `slot`, the last one, was added to the graph.
    pub(super) fn added(&mut self, slot: Slot) {
        self.model.added(&self.graph, slot);
        if self.bounded && self.model.sequential().is_none() {
            self.overlay.added(&self.graph, slot);
        }
    }
}
