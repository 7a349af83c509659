//! Whether an execution in which *c* was made to come before *e* is new.
//!
//! If nothing but the reversal itself puts *c* before *e*, the two commute there, and the same
//! trace was proven when *e* still had to come first.

use std::cell::Cell;

use super::log::EventPlace;
use crate::graph::{Graph, INIT, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::Op;

/// The flag that stands for the reversal.
pub(super) const FLAG: Location = Location(0);

/// The numbers that explorers give to the reversed pair of events in the present execution.
#[derive(Clone, Debug, Default)]
pub(super) struct Pair {
    pub(super) first: Cell<Option<u32>>,
    pub(super) later: Cell<Option<u32>>,
}

impl Pair {
    /// An execution begins.
    pub(super) fn forget(&self) {
        self.first.set(None);
        self.later.set(None);
    }

    /// Whether the complete execution `graph`, in which an event of thread `first` was to come
    /// before one of thread `later`, was not proven before.
    pub(super) fn is_new(
        &self,
        graph: &Graph,
        (first, later): (ThreadId, ThreadId),
        places: &[Option<EventPlace>],
    ) -> bool {
        let Some(index) = self.first.get() else {
            return false;
        };
        let from = graph.thread(first)[index as usize];
        let to = match self.later.get() {
            Some(index) => Some(graph.thread(later)[index as usize]),
            // It waited for the end of the thread instead, or of a thread that did not create it.
            None => last_of(graph, later, places),
        };
        to.is_some_and(|to| comes_before(graph, from, to))
    }
}

fn last_of(graph: &Graph, thread: ThreadId, places: &[Option<EventPlace>]) -> Option<Slot> {
    graph.last(thread).or_else(|| {
        let (parent, _) = places.get(thread.index()).copied().flatten()?;
        last_of(graph, parent, places)
    })
}

/// Whether `from` comes before `to` in every order of `graph`, the reversal left out of account.
fn comes_before(graph: &Graph, from: Slot, to: Slot) -> bool {
    let mut seen = vec![false; graph.len()];
    let mut open = vec![to];
    while let Some(slot) = open.pop() {
        if slot == from {
            return true;
        }
        if !std::mem::replace(&mut seen[slot as usize], true) {
            causes(graph, slot, Some(FLAG), &mut open);
        }
    }
    false
}

/// The events right before `slot`, without those at the location `without`.
pub(super) fn causes(graph: &Graph, slot: Slot, without: Option<Location>, into: &mut Vec<Slot>) {
    let event = graph.event(slot);
    into.extend(graph.predecessor(event.id));
    match event.op {
        Op::Join { child } => into.extend(graph.last(child)),
        Op::JoinAll => {
            let all = (0..graph.threads() as u32).map(ThreadId);
            into.extend(
                all.filter(|&t| t != event.id.thread)
                    .filter_map(|t| graph.last(t)),
            );
        }
        _ => {}
    }
    let Some(location) = event.op.location().filter(|&at| Some(at) != without) else {
        return;
    };
    if event.kind.reads() {
        into.extend(Some(event.source).filter(|&source| source != INIT));
    }
    if event.kind.writes() {
        let position = graph.position(location, slot);
        let before = graph.write_at(location, position - 1);
        into.extend(Some(before).filter(|&before| before != INIT));
        into.extend(
            graph
                .readers(location, before)
                .filter(|&reader| reader != slot),
        );
    }
}
