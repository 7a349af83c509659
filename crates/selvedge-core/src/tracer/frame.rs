//! Frames: the branching points of the search, as an explicit stack in place of recursion.

use super::awaits::{AwaitRead, Iterations};
use super::schedules::Schedules;
use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::op::{Effect, Op, Value};

/// No event, no frame.
pub(super) const NOWHERE: Slot = Slot::MAX;

/// An operation with several outcomes: a read, an update, a choice.
#[derive(Debug)]
pub(super) struct Frame {
    /// The number of events before the operation.
    pub(super) events: usize,
    pub(super) thread: ThreadId,
    /// The index of the operation's first event in its thread.
    pub(super) index: u32,
    pub(super) op: Op,
    /// The initial value of its location.
    pub(super) initial: Value,
    /// The previous frame of the same location, or [`NOWHERE`].
    pub(super) previous: u32,
    /// The slot of the operation's first event in the present graph, or [`NOWHERE`].
    pub(super) slot: Slot,
    /// A blocking update (a lock, …) that took the only write it could take. If another update
    /// takes that write instead, this one is blocked again: the schedule does not contain it, and
    /// it gets a new frame later.
    pub(super) blocking: bool,
    /// For a read of an await loop, the await it belongs to. Such reads get no schedules.
    pub(super) awaits: Option<AwaitRead>,
    /// The await that begins with this read was skipped.
    pub(super) skipped: bool,
    /// The iterations of the await that begins with this read.
    pub(super) iterations: Iterations,
    /// The writes of the graph that are still to be read, the next one last.
    pub(super) sources: Vec<Slot>,
    /// The next of the effects that an update has when it reads the last of them.
    pub(super) next_choice: u32,
    pub(super) schedules: Schedules,
}

impl Frame {
    /// The first event of the operation.
    pub(super) fn id(&self) -> EventId {
        EventId {
            thread: self.thread,
            index: self.index,
        }
    }

    pub(super) fn location(&self) -> Option<Location> {
        self.op.location()
    }

    /// Whether the await that begins here was skipped and `event` is a read of it that must not
    /// take `source`: that write was in the graph already, like all the await has read so far.
    pub(super) fn excludes(&self, graph: &Graph, event: EventId, source: Slot) -> bool {
        let is_old = |source| source == INIT || (source as usize) < self.events;
        if !self.skipped
            || self.thread != event.thread
            || event.index < self.index
            || !is_old(source)
        {
            return false;
        }
        let reads = &graph.thread(event.thread)[self.index as usize..event.index as usize];
        reads.iter().all(|&slot| {
            let event = graph.event(slot);
            match event.kind {
                Kind::Silent => true,
                Kind::Read => is_old(event.source),
                _ => false,
            }
        })
    }
}

/// The last frame of each location.
#[derive(Debug, Default)]
pub(super) struct Latest {
    frames: Vec<u32>,
}

impl Latest {
    /// The last frame of `at`, or [`NOWHERE`].
    pub(super) fn of(&self, at: Location) -> u32 {
        self.frames.get(at.index()).copied().unwrap_or(NOWHERE)
    }

    pub(super) fn set(&mut self, at: Location, frame: u32) {
        if self.frames.len() <= at.index() {
            self.frames.resize(at.index() + 1, NOWHERE);
        }
        self.frames[at.index()] = frame;
    }

    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }
}

/// The number of outcomes that `op` has when it reads `value`.
pub(super) fn alternatives(op: &Op, value: Value) -> u32 {
    match op {
        Op::Update { function, .. } => match function.apply(value) {
            Effect::Block => 0,
            Effect::Choose(alternatives) => alternatives,
            Effect::Write(_) | Effect::Keep => 1,
        },
        Op::Choose { alternatives } => *alternatives,
        _ => 1,
    }
}
