//! Orders in which the operations of a graph can be put: what comes next, what would have to wait, what
//! leaving a thread costs. Bounds and counterexamples are made of these.

pub(crate) mod gaps;
pub(crate) mod line;
pub(crate) mod packed;
pub(crate) mod parts;
pub(crate) mod search;

use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::{Effect, Op, Value};

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

/// Of each thread, how many events are performed at all: parked reads never are.
pub(crate) fn performed_events(graph: &Graph, ends: &mut Vec<u32>) {
    ends.clear();
    for thread in 0..graph.threads() {
        let events = graph.thread(ThreadId(thread as u32));
        let last = events.last().map(|&last| graph.event(last).kind);
        let parked = last == Some(Kind::Parked);
        ends.push(events.len() as u32 - u32::from(parked));
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

    /// Whether leaving `thread` at this point costs nothing: it has no further event, or would have
    /// to wait.
    pub(crate) fn leaves_freely(self, done: &[u32], thread: ThreadId) -> bool {
        self.next(done, thread)
            .is_none_or(|slot| self.waits(done, slot))
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

    /// What the location holds at this point, if any event tells.
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
