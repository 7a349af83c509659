//! The alternatives to an event: which write a read sees; for writes see `writes.rs`.

use serde::{Deserialize, Serialize};

use super::Level;
use super::writes::WriteBranch;
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::model::{Access, Model};
use crate::op::{Effect, Op, Value};

/// Alternatives that are still untried.
#[derive(Clone, Debug)]
pub(super) enum Branch {
    /// The numbers from `next` on of a data choice.
    Choose {
        thread: ThreadId,
        op: Op,
        next: u32,
        alternatives: u32,
    },
    Read(ReadBranch),
    Write(WriteBranch),
}

impl Branch {
    pub(super) fn has_more(&self) -> bool {
        match self {
            Branch::Choose {
                next, alternatives, ..
            } => next < alternatives,
            Branch::Read(branch) => branch.has_more(),
            Branch::Write(branch) => branch.has_more(),
        }
    }

    /// About how many alternatives are left, at least one.
    pub(super) fn untried(&self, graph: &Graph) -> usize {
        let untried = match self {
            Branch::Choose {
                next, alternatives, ..
            } => (alternatives - next) as usize,
            Branch::Read(branch) => branch.positions.untried(),
            Branch::Write(branch) => branch.untried(graph),
        };
        untried.max(1)
    }
}

/// The effect of an operation when it reads a certain value.
pub(super) struct Reading {
    pub(super) kind: Kind,
    pub(super) wrote: Value,
    pub(super) alternatives: u32,
}

impl Reading {
    pub(super) fn of(op: Op, value: Value, choice: u32) -> Reading {
        let Op::Update { function, .. } = op else {
            return Reading {
                kind: Kind::Read,
                wrote: 0,
                alternatives: 1,
            };
        };
        let (kind, wrote, alternatives) = match function.apply(value) {
            Effect::Write(wrote) => (Kind::ReadHalf, wrote, 1),
            Effect::Keep => (Kind::Read, 0, 1),
            Effect::Block => (Kind::Parked, 0, 1),
            Effect::Choose(alternatives) => {
                let wrote = function.choose(value, choice);
                (Kind::ReadHalf, wrote, alternatives)
            }
        };
        Reading {
            kind,
            wrote,
            alternatives,
        }
    }
}

/// Positions of the coherence order, newest first, each with every choice.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Positions {
    pub(super) next: Option<(usize, u32)>,
    oldest: usize,
}

impl Positions {
    pub(super) fn new(newest: usize, oldest: usize) -> Positions {
        Positions {
            next: (newest >= oldest).then_some((newest, 0)),
            oldest,
        }
    }

    pub(super) fn none() -> Positions {
        Positions {
            next: None,
            oldest: 0,
        }
    }

    /// How many positions there are.
    pub(super) fn untried(&self) -> usize {
        self.next
            .map_or(0, |(position, _)| position + 1 - self.oldest)
    }

    /// Steps on from `(position, choice)`, at which there are this many alternatives.
    fn step(&mut self, (position, choice): (usize, u32), alternatives: u32) {
        self.next = if choice + 1 < alternatives {
            Some((position, choice + 1))
        } else if position > self.oldest {
            Some((position - 1, 0))
        } else {
            None
        };
    }
}

/// The writes that a new read may see.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadBranch {
    pub(super) thread: ThreadId,
    pub(super) op: Op,
    pub(super) location: Location,
    initial: Value,
    positions: Positions,
    oldest: Oldest,
    /// A value that makes the thread spin, touching nothing else. What it does then does not depend
    /// on which thread wrote the value, so it is not worth reading again where a newer one is known.
    futile: Option<Value>,
}

/// How far back a read may look. An update that writes may differ from one that does not, since
/// each has an order of its own.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Oldest {
    writing: usize,
    failing: usize,
}

impl Oldest {
    fn new<C: Model>(level: &mut Level<C>, access: &Access) -> Oldest {
        let mut of = |kind| {
            level
                .model
                .oldest(&level.graph, &Access { kind, ..*access })
        };
        match access.op {
            Op::Update { order, failure, .. } if order != failure => Oldest {
                writing: of(Kind::ReadHalf),
                failing: of(Kind::Read),
            },
            Op::Update { .. } => Oldest::both(of(Kind::ReadHalf)),
            _ => Oldest::both(of(Kind::Read)),
        }
    }

    fn both(oldest: usize) -> Oldest {
        Oldest {
            writing: oldest,
            failing: oldest,
        }
    }

    fn of(&self, kind: Kind) -> usize {
        match kind {
            Kind::ReadHalf => self.writing,
            _ => self.failing,
        }
    }
}

/// One way to add a read.
pub(super) struct NewRead {
    source: Slot,
    value: Value,
    reading: Reading,
    choice: u32,
    /// The thread is known to spin if it reads this.
    pub(super) futile: bool,
}

impl ReadBranch {
    pub(super) fn new<C: Model>(
        level: &mut Level<C>,
        thread: ThreadId,
        op: Op,
        location: Location,
        initial: Value,
    ) -> ReadBranch {
        let access = Access {
            thread,
            predecessor: level.graph.last(thread),
            location,
            op,
            kind: Kind::Read,
        };
        let oldest = Oldest::new(level, &access);
        let newest = level.graph.coherence(location).len();
        ReadBranch {
            thread,
            op,
            location,
            initial,
            positions: Positions::new(newest, oldest.writing.min(oldest.failing)),
            oldest,
            futile: None,
        }
    }

    /// The rest of a read that another search has begun.
    pub(super) fn of_left(
        (thread, op, location): (ThreadId, Op, Location),
        initial: Value,
        (positions, oldest): (Positions, Oldest),
    ) -> ReadBranch {
        ReadBranch {
            thread,
            op,
            location,
            initial,
            positions,
            oldest,
            futile: None,
        }
    }

    /// The untried alternatives.
    pub(super) fn left(&self) -> (Positions, Oldest) {
        (self.positions, self.oldest)
    }

    /// Reading `value` made the thread spin, and it touched nothing else on the way.
    pub(super) fn spins_at(&mut self, value: Value) {
        self.futile = Some(value);
    }

    fn is_futile(&self, graph: &Graph, source: Slot, value: Value) -> bool {
        if self.futile != Some(value) {
            return false;
        }
        let equal = graph.last_equal(self.location, source);
        !graph.later_writes(self.location, equal).is_empty()
    }

    /// The newest write with another value than the first alternative that `spins` holds for, if there is no
    /// point in reading it should the thread spin then.
    pub(super) fn perhaps_futile(
        &self,
        graph: &Graph,
        spins: impl Fn(Value) -> bool,
    ) -> Option<NewRead> {
        let mut rest = *self;
        let first = rest.advance(graph)?;
        while let Some(read) = rest.advance(graph) {
            if read.value != first.value && read.reading.kind == Kind::Read && spins(read.value) {
                rest.spins_at(read.value);
                return rest
                    .is_futile(graph, read.source, read.value)
                    .then_some(read);
            }
        }
        None
    }

    pub(super) fn has_more(&self) -> bool {
        self.positions.next.is_some()
    }

    pub(super) fn advance(&mut self, graph: &Graph) -> Option<NewRead> {
        while let Some((position, choice)) = self.positions.next {
            let source = graph.write_at(self.location, position);
            let value = match source {
                INIT => self.initial,
                source => graph.event(source).wrote,
            };
            let reading = Reading::of(self.op, value, choice);
            self.positions
                .step((position, choice), reading.alternatives);
            let newest = position == graph.coherence(self.location).len();
            let consistent = position >= self.oldest.of(reading.kind);
            let pointless = reading.kind == Kind::Parked && !newest;
            if consistent && !pointless {
                let futile = self.is_futile(graph, source, value);
                return Some(NewRead {
                    source,
                    value,
                    reading,
                    choice,
                    futile,
                });
            }
        }
        None
    }
}

impl NewRead {
    /// Adds it to the graph.
    pub(super) fn push<C: Model>(
        self,
        level: &mut Level<C>,
        thread: ThreadId,
        op: Op,
        location: Location,
    ) -> Event {
        let id = level.graph.next_id(thread);
        let mut event = Event::new(id, self.reading.kind, op);
        event.read = self.value;
        event.wrote = self.reading.wrote;
        event.choice = self.choice;
        let slot = level.graph.push_read(location, event, self.source);
        level.added(slot);
        event
    }
}

pub(super) fn access(event: &Event, location: Location, predecessor: Option<Slot>) -> Access {
    Access {
        thread: event.id.thread,
        predecessor,
        location,
        op: event.op,
        kind: event.kind,
    }
}

/// The next position at which a write does not come between the halves of an update.
pub(super) fn next_unglued(
    positions: &mut Positions,
    graph: &Graph,
    location: Location,
    alternatives: u32,
) -> Option<(usize, u32)> {
    while let Some(next) = positions.next {
        positions.step(next, alternatives);
        if !graph.glued(location, next.0) {
            return Some(next);
        }
    }
    None
}
