//! Points to come back to: reads with the writes they have not been given yet.

use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{EventId, Location, Site, ThreadId};
use crate::op::{Effect, Op, Value};

/// No event.
pub(super) const NOWHERE: Slot = Slot::MAX;

/// An operation that can go on in several ways: a read, an update, a choice.
#[derive(Debug)]
pub(super) struct Frame {
    /// How many events there were before it.
    pub(super) events: usize,
    /// Who performs it.
    pub(super) thread: ThreadId,
    /// Which event of its thread it is.
    pub(super) index: u32,
    /// What it is.
    pub(super) op: Op,
    /// What its location holds initially.
    pub(super) initial: Value,
    /// The frame before it with the same location, or [`NOWHERE`].
    pub(super) previous: u32,
    /// Where it is in the present graph, or [`NOWHERE`].
    pub(super) slot: Slot,
    /// An update that can wait and took the one write there was for it. Whoever takes that write
    /// instead leaves it waiting: then it is not part of the schedule, and gets a new frame when it
    /// can go on.
    pub(super) waits: bool,
    /// For a read of a loop that only waits, how it stands; for one that is not the first of its
    /// attempt that is of no interest.
    pub(super) turn: Option<Turn>,
    /// The attempt that it is part of.
    pub(super) attempt: Attempt,
    /// What was found out in the attempts that begin with it.
    pub(super) paths: Paths,
    /// The other locations that were read in these attempts.
    pub(super) watched: Vec<Location>,
    /// The locations that others wrote who did not know of these attempts.
    pub(super) written: Vec<Location>,
    /// The writes that were there and have not been tried, the next one last.
    pub(super) sources: Vec<Slot>,
    /// The next of the alternatives that the last of them leaves.
    pub(super) next_choice: u32,
    /// Schedules found so far.
    pub(super) schedules: Schedules,
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

    /// There are no frames any more.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
    }
}

/// What becomes of a read of a loop that only waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It reads one of the writes that were there.
    Taken {
        /// Others turned up, with it in place, who could have written what it reads, or taken it.
        rivals: bool,
    },
    /// It reads none of these: others go first.
    Left,
}

/// Where the read of a frame stands in an attempt to get out of a loop: some reads of one thread,
/// one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    /// The frame of the first read.
    pub(super) first: u32,
    /// What was read before, among the paths of that frame.
    pub(super) path: u32,
    /// The frame in which the thread left this turn to others, if it did.
    pub(super) left: Option<u32>,
    /// What was read before, among the paths of that frame, if all of it was there already.
    pub(super) old: Option<u32>,
    /// Where the first read stands in the program.
    pub(super) site: Site,
}

/// No attempt.
pub(super) const NO_ATTEMPT: Attempt = Attempt {
    first: NOWHERE,
    path: START,
    left: None,
    old: None,
    site: Site(0),
};

/// What came of the reads of attempts, as a tree.
#[derive(Debug, Default)]
pub(super) struct Paths {
    reads: Vec<Path>,
    /// Values that leave the thread in a loop that it came to in this attempt, by what was read
    /// before, and the event with which that begins.
    futile: Vec<(u32, Value, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    before: u32,
    at: Location,
    source: Slot,
    /// The thread is through: it is about to do something else than to read on.
    through: bool,
}

/// Where paths begin.
pub(super) const START: u32 = u32::MAX;

impl Paths {
    pub(super) fn clear(&mut self) {
        self.reads.clear();
        self.futile.clear();
    }

    /// Notes that after `before` a read of `at` took `source`.
    pub(super) fn add(&mut self, before: u32, at: Location, source: Slot, through: bool) -> u32 {
        let path = Path {
            before,
            at,
            source,
            through,
        };
        self.reads.push(path);
        self.reads.len() as u32 - 1
    }

    /// Notes that after `before` reading `value` leaves the thread in a loop since its event
    /// `since`.
    pub(super) fn add_futile(&mut self, before: u32, value: Value, since: u32) {
        if self.futile_since(before, value).is_none() {
            self.futile.push((before, value, since));
        }
    }

    /// The event since which it is known to do so.
    pub(super) fn futile_since(&self, before: u32, value: Value) -> Option<u32> {
        let mut futile = self.futile.iter();
        let found = futile.find(|futile| (futile.0, futile.1) == (before, value));
        found.map(|futile| futile.2)
    }

    /// Where the thread reads on after `before` and then `source`. `None` if it does not.
    pub(super) fn further(&self, before: u32, source: Slot) -> Option<u32> {
        let leads =
            |path: &Path| (path.before, path.source, path.through) == (before, source, false);
        self.reads.iter().position(leads).map(|path| path as u32)
    }

    /// Whether the thread got through in some way.
    pub(super) fn any_through(&self) -> bool {
        self.reads.iter().any(|path| path.through)
    }

    /// Whether the thread gets through if it reads the `newest` write each time.
    pub(super) fn through(&self, newest: impl Fn(Location) -> Option<Slot>) -> bool {
        let mut before = START;
        loop {
            let reads = |path: &Path| path.before == before && newest(path.at) == Some(path.source);
            let Some(next) = self.reads.iter().position(reads) else {
                return false;
            };
            if self.reads[next].through {
                return true;
            }
            before = next as u32;
        }
    }
}

/// Notes that there is a rival, if frame `index` is a read of a loop that only waits. It then gets
/// no schedule.
pub(super) fn has_rival(frames: &mut [Frame], index: usize) -> bool {
    if frames[index].turn.is_none() {
        return false;
    }
    let first = frames[index].attempt.first as usize;
    if let Some(Turn::Taken { rivals }) = &mut frames[first].turn {
        *rivals = true;
    }
    true
}

impl Frame {
    /// How many events there were when a thread left its turn to others here, if its `event` is
    /// still part of what it left: all it did since was to read what was there then.
    pub(super) fn left_by(&self, graph: &Graph, event: EventId) -> Option<usize> {
        let left = (self.thread, self.turn) == (event.thread, Some(Turn::Left));
        if !left || event.index < self.index {
            return None;
        }
        let mut since =
            graph.thread(event.thread)[self.index as usize..event.index as usize].iter();
        let old = since.all(|&slot| {
            let event = graph.event(slot);
            match event.kind {
                Kind::Silent => true,
                Kind::Read => is_left(Some(self.events), event.source),
                _ => false,
            }
        });
        old.then_some(self.events)
    }

    /// The first event of its operation.
    pub(super) fn id(&self) -> EventId {
        EventId {
            thread: self.thread,
            index: self.index,
        }
    }

    pub(super) fn location(&self) -> Option<Location> {
        self.op.location()
    }
}

/// Whether a read that left its turn to others when there were so many events must not read
/// `source`, which was there.
pub(super) fn is_left(left: Option<usize>, source: Slot) -> bool {
    left.is_some_and(|events| source == INIT || (source as usize) < events)
}

/// How many ways `op` has to go on when it reads `value`.
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

/// One step of a schedule: what the pending operation of a thread reads. The operation itself
/// follows from what was performed before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) thread: ThreadId,
    /// The write that is read; `None` for the initial one, and where nothing is read.
    pub(super) source: Option<EventId>,
    pub(super) choice: u32,
}

/// What tells two schedules apart: the event, what it reads, what it picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Observation {
    pub(super) event: EventId,
    pub(super) source: Option<EventId>,
    pub(super) choice: u32,
}

/// The schedules of a frame: those still to be run, and a tree of the observations of all there
/// ever were. Two schedules with the same observations are the same in another order.
#[derive(Debug, Default)]
pub(super) struct Schedules {
    steps: Vec<Step>,
    /// Where each schedule that is still to be run begins in `steps`.
    starts: Vec<usize>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    observation: Observation,
    first_child: u32,
    next_sibling: u32,
}

const NONE: u32 = u32::MAX;

impl Schedules {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.starts.clear();
        self.nodes.clear();
    }

    /// Whether a schedule with these observations, in canonical order, is new. No schedule's
    /// observations begin with all of another's: the first one says what the schedule is for, and
    /// everything else is there because that needs it.
    pub(super) fn is_new(&mut self, observations: &[Observation]) -> bool {
        let mut new = false;
        let mut parent = NONE;
        for &observation in observations {
            let first = match parent {
                NONE if self.nodes.is_empty() => NONE,
                NONE => 0,
                parent => self.nodes[parent as usize].first_child,
            };
            let mut last = NONE;
            let mut child = first;
            while child != NONE && self.nodes[child as usize].observation != observation {
                last = child;
                child = self.nodes[child as usize].next_sibling;
            }
            if child == NONE {
                new = true;
                child = self.nodes.len() as u32;
                self.nodes.push(Node {
                    observation,
                    first_child: NONE,
                    next_sibling: NONE,
                });
                if last != NONE {
                    self.nodes[last as usize].next_sibling = child;
                } else if parent != NONE {
                    self.nodes[parent as usize].first_child = child;
                }
            }
            parent = child;
        }
        new
    }

    /// Keeps a schedule to be run.
    pub(super) fn push(&mut self, steps: impl Iterator<Item = Step>) {
        self.starts.push(self.steps.len());
        self.steps.extend(steps);
    }

    /// Takes the schedule found last, into `steps`.
    pub(super) fn pop(&mut self, steps: &mut Vec<Step>) -> bool {
        let Some(start) = self.starts.pop() else {
            return false;
        };
        steps.clear();
        steps.extend(self.steps.drain(start..));
        true
    }
}
