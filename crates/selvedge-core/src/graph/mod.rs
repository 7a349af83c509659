//! Execution graphs: events, program order, reads-from, coherence, and the order of addition.
//!
//! A graph is grown one event at a time and shrunk again from the end, so everything in it is kept
//! as stacks: adding and undoing allocate nothing once the stacks have grown. Consistency is not
//! decided here, see [`crate::model`].

mod clock_trail;
mod clocks;
mod restrict;
mod saved;
mod waits;

pub use clock_trail::ClockTrail;
pub(crate) use clocks::LANES;
pub use clocks::{Clocks, join};
pub use saved::{Performed, SavedGraph};

use serde::{Deserialize, Serialize};

use crate::ids::{EventId, Location, ThreadId};
use crate::op::{Op, Value};

/// An event's place in the order in which the events of a graph were added.
pub type Slot = u32;

/// Stands for the initial write of a location where a slot is expected.
pub const INIT: Slot = u32::MAX;
/// No slot at all.
const NONE: Slot = u32::MAX - 1;

/// The effect of an event on its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A load, or an update that wrote nothing.
    Read,
    /// A store.
    Write,
    /// The read half of an update that writes.
    ReadHalf,
    /// The write half of an update, always the event added right after its read half.
    WriteHalf,
    /// The read of an update whose guard failed, or of a compare-exchange that is tried again
    /// until it succeeds; the last event of its thread.
    Parked,
    /// Fences, creations, joins, choices: nothing on any location.
    Silent,
}

impl Kind {
    /// Whether it reads.
    pub fn reads(self) -> bool {
        matches!(self, Kind::Read | Kind::ReadHalf | Kind::Parked)
    }

    /// Whether it writes.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Write | Kind::WriteHalf)
    }
}

/// Knowledge about the further steps of a thread after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Next {
    /// Nothing is known.
    Unknown,
    /// It has ended.
    Nothing,
    /// It waits for another one to end.
    Join(ThreadId),
    /// It waits for all others to end.
    JoinAll,
}

/// One event of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Thread and place in program order.
    pub id: EventId,
    /// Its effect on its location.
    pub kind: Kind,
    /// The operation it comes from (both halves of an update have the same).
    pub op: Op,
    /// The write that is read, for events that read.
    pub source: Slot,
    /// The value read or picked; a write half keeps what its read half read.
    pub read: Value,
    /// The value written; a read half keeps what its write half will write.
    pub wrote: Value,
    /// The number of the alternative that was taken; zero where there is only one.
    pub choice: u32,
    /// For an update that was parked until a write revisited it without deleting anything: the write that it was parked
    /// at. For a write that does not have the waking one in its prefix, the update still counts as parked.
    pub woken_from: Option<Slot>,
    /// Knowledge about the further steps of its thread.
    pub next: Next,
    first_reader: Slot,
    next_reader: Slot,
}

impl Event {
    /// A new event without relations.
    pub fn new(id: EventId, kind: Kind, op: Op) -> Event {
        Event {
            id,
            kind,
            op,
            source: NONE,
            read: 0,
            wrote: 0,
            choice: 0,
            woken_from: None,
            next: Next::Unknown,
            first_reader: NONE,
            next_reader: NONE,
        }
    }
}

#[derive(Clone, Debug)]
struct PerLocation {
    coherence: Vec<Slot>,
    reads: Vec<Slot>,
    first_initial_reader: Slot,
    listed: bool,
}

#[derive(Clone, Debug)]
struct PerThread {
    events: Vec<Slot>,
    creation: Slot,
}

/// An execution graph.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    events: Vec<Event>,
    threads: Vec<PerThread>,
    locations: Vec<PerLocation>,
    touched: Vec<Location>,
    causality: Clocks,
}

impl Graph {
    /// Removes every event, keeping the memory.
    pub fn clear(&mut self) {
        self.events.clear();
        for thread in &mut self.threads {
            thread.events.clear();
            thread.creation = NONE;
        }
        for location in self.touched.drain(..) {
            let location = &mut self.locations[location.index()];
            location.coherence.clear();
            location.reads.clear();
            location.first_initial_reader = NONE;
            location.listed = false;
        }
        self.causality.truncate(0);
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// How many threads the graph has room for; the others have no events.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The event in `slot`.
    pub fn event(&self, slot: Slot) -> &Event {
        &self.events[slot as usize]
    }

    /// All events in the order of addition.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The events of `thread` in program order.
    pub fn thread(&self, thread: ThreadId) -> &[Slot] {
        match self.threads.get(thread.index()) {
            Some(thread) => &thread.events,
            None => &[],
        }
    }

    /// The last event of `thread`, or the creation of a thread that has none.
    pub fn last(&self, thread: ThreadId) -> Option<Slot> {
        let thread = self.threads.get(thread.index())?;
        let creation = (thread.creation != NONE).then_some(thread.creation);
        thread.events.last().copied().or(creation)
    }

    /// The event right before it in program order; for the first, the creation of its thread.
    pub fn predecessor(&self, id: EventId) -> Option<Slot> {
        let thread = &self.threads[id.thread.index()];
        match id.index {
            0 => (thread.creation != NONE).then_some(thread.creation),
            index => Some(thread.events[index as usize - 1]),
        }
    }

    /// The writes to `location` in coherence order, without the initial one.
    pub fn coherence(&self, location: Location) -> &[Slot] {
        match self.locations.get(location.index()) {
            Some(location) => &location.coherence,
            None => &[],
        }
    }

    /// The reads of `location` in the order of addition.
    pub fn reads(&self, location: Location) -> &[Slot] {
        match self.locations.get(location.index()) {
            Some(location) => &location.reads,
            None => &[],
        }
    }

    /// The locations that some event reads or writes.
    pub fn locations(&self) -> &[Location] {
        &self.touched
    }

    /// The write at `position` of the coherence order, where 0 is the initial write.
    pub fn write_at(&self, location: Location, position: usize) -> Slot {
        match position {
            0 => INIT,
            position => self.coherence(location)[position - 1],
        }
    }

    /// The newest write to `location`.
    pub fn newest(&self, location: Location) -> Slot {
        self.coherence(location).last().copied().unwrap_or(INIT)
    }

    /// Inverse of [`write_at`](Graph::write_at).
    pub fn position(&self, location: Location, write: Slot) -> usize {
        if write == INIT {
            return 0;
        }
        let coherence = self.coherence(location);
        let from_end = coherence.iter().rev().position(|&slot| slot == write);
        coherence.len() - from_end.expect("a write stands in the coherence order of its location")
    }

    /// The writes that come after `write` in coherence order.
    pub fn later_writes(&self, location: Location, write: Slot) -> &[Slot] {
        &self.coherence(location)[self.position(location, write)..]
    }

    /// Notes what `thread` does after its last event.
    pub fn note_next(&mut self, thread: ThreadId, next: Next) {
        if let Some(&last) = self.thread(thread).last() {
            self.events[last as usize].next = next;
        }
    }

    /// The events that read from `write`, which may be [`INIT`].
    pub fn readers(&self, location: Location, write: Slot) -> Readers<'_> {
        let next = match write {
            INIT => match self.locations.get(location.index()) {
                Some(location) => location.first_initial_reader,
                None => NONE,
            },
            write => self.event(write).first_reader,
        };
        Readers { graph: self, next }
    }

    /// Of each thread, how many events come before `slot` in program order, reads-from, creation
    /// and join, the event itself included.
    pub fn causality(&self, slot: Slot) -> &[u32] {
        self.causality.of(slot)
    }

    /// The clocks that [`causality`](Graph::causality) returns.
    pub(crate) fn causality_clocks(&self) -> &Clocks {
        &self.causality
    }

    /// Whether event `slot` is among those counted by `clock`.
    pub fn counted(&self, clock: &[u32], slot: Slot) -> bool {
        let id = self.event(slot).id;
        clock[id.thread.index()] > id.index
    }

    /// Whether `clock` counts all direct causes of `slot` in other threads: the creation of its thread, the write
    /// that it reads, and the threads that it joins.
    #[inline]
    pub(crate) fn causes_counted(&self, clock: &[u32], slot: Slot) -> bool {
        let counted = |slot: Slot| slot == INIT || self.counted(clock, slot);
        let event = self.event(slot);
        if event.id.index == 0 && !self.predecessor(event.id).is_none_or(counted) {
            return false;
        }
        let all = |thread: ThreadId| clock[thread.index()] as usize >= self.thread(thread).len();
        match event.kind {
            Kind::Read | Kind::ReadHalf | Kind::Parked => counted(event.source),
            Kind::Write | Kind::WriteHalf => true,
            Kind::Silent => match event.op {
                Op::Join { child } => all(child),
                Op::JoinAll => {
                    let mut others = (0..self.threads() as u32).map(ThreadId);
                    others.all(|other| other == event.id.thread || all(other))
                }
                _ => true,
            },
        }
    }

    /// Whether a write half stands right after the write at `position`, so that nothing may come
    /// between the two.
    pub fn glued(&self, location: Location, position: usize) -> bool {
        match self.coherence(location).get(position) {
            Some(&next) => self.event(next).kind == Kind::WriteHalf,
            None => false,
        }
    }

    /// The name of the next event of `thread`.
    pub fn next_id(&self, thread: ThreadId) -> EventId {
        let index = self.thread(thread).len() as u32;
        EventId { thread, index }
    }

    /// Makes room for threads numbered below `threads`.
    pub fn reserve_threads(&mut self, threads: usize) {
        if threads > self.threads.len() {
            let empty = PerThread {
                events: Vec::new(),
                creation: NONE,
            };
            self.threads.resize(threads, empty);
            self.causality.widen(threads);
        }
    }

    /// Adds an event that touches no location. A join also orders all of its child before it.
    pub fn push_silent(&mut self, event: Event) -> Slot {
        debug_assert_eq!(event.kind, Kind::Silent);
        let slot = self.push(event);
        match event.op {
            Op::Create { child } => self.threads[child.index()].creation = slot,
            Op::Join { child } => self.causality_after_join(slot, child),
            Op::JoinAll => {
                for child in 0..self.threads.len() as u32 {
                    if ThreadId(child) != event.id.thread {
                        self.causality_after_join(slot, ThreadId(child));
                    }
                }
            }
            _ => {}
        }
        slot
    }

    /// A joined thread's last steps come after its last event, hence the one more.
    fn causality_after_join(&mut self, slot: Slot, child: ThreadId) {
        if let Some(last) = self.last(child) {
            self.causality.join(slot, last);
            let ended = self.thread(child).len() as u32 + 1;
            self.causality.of_mut(slot)[child.index()] = ended;
        }
    }

    /// Adds an event that reads from `source`.
    pub fn push_read(&mut self, location: Location, mut event: Event, source: Slot) -> Slot {
        debug_assert!(event.kind.reads());
        self.touch(location);
        event.source = source;
        let slot = self.push(event);
        self.link_reader(location, slot, source);
        self.locations[location.index()].reads.push(slot);
        slot
    }

    /// Adds a write directly after the write at `position` of the coherence order.
    pub fn push_write(&mut self, location: Location, event: Event, position: usize) -> Slot {
        debug_assert!(event.kind.writes());
        self.touch(location);
        let slot = self.push(event);
        let coherence = &mut self.locations[location.index()].coherence;
        coherence.insert(position, slot);
        slot
    }

    /// Takes back the event added last.
    pub fn pop(&mut self) {
        let slot = self.events.len() as Slot - 1;
        let event = self.events[slot as usize];
        self.threads[event.id.thread.index()].events.pop();
        if let Some(location) = event.op.location() {
            let at = location.index();
            if event.kind.reads() {
                debug_assert_eq!(self.locations[at].reads.last(), Some(&slot));
                self.locations[at].reads.pop();
                match event.source {
                    INIT => self.locations[at].first_initial_reader = event.next_reader,
                    source => self.events[source as usize].first_reader = event.next_reader,
                }
            } else {
                let position = self.position(location, slot);
                self.locations[at].coherence.remove(position - 1);
            }
        } else if let Op::Create { child } = event.op {
            self.threads[child.index()].creation = NONE;
        }
        self.events.pop();
        self.causality.truncate(slot);
    }

    fn push(&mut self, event: Event) -> Slot {
        let id = event.id;
        debug_assert_eq!(id, self.next_id(id.thread));
        let slot = self.events.len() as Slot;
        match self.last(id.thread) {
            Some(previous) => self.causality.push_copy(previous),
            None => self.causality.push_zero(),
        }
        self.causality.of_mut(slot)[id.thread.index()] = id.index + 1;
        if event.kind.reads() && event.source != INIT {
            self.causality.join(slot, event.source);
        }
        self.events.push(event);
        self.threads[id.thread.index()].events.push(slot);
        slot
    }

    fn link_reader(&mut self, location: Location, read: Slot, source: Slot) {
        let head = match source {
            INIT => &mut self.locations[location.index()].first_initial_reader,
            source => &mut self.events[source as usize].first_reader,
        };
        let next = std::mem::replace(head, read);
        self.events[read as usize].next_reader = next;
    }

    fn touch(&mut self, location: Location) {
        if location.index() >= self.locations.len() {
            let empty = PerLocation {
                coherence: Vec::new(),
                reads: Vec::new(),
                first_initial_reader: NONE,
                listed: false,
            };
            self.locations.resize(location.index() + 1, empty);
        }
        if !std::mem::replace(&mut self.locations[location.index()].listed, true) {
            self.touched.push(location);
        }
    }
}

/// Iterates over the events that read from one write, latest first.
pub struct Readers<'g> {
    graph: &'g Graph,
    next: Slot,
}

impl Iterator for Readers<'_> {
    type Item = Slot;

    fn next(&mut self) -> Option<Slot> {
        if self.next == NONE {
            return None;
        }
        let reader = self.next;
        self.next = self.graph.event(reader).next_reader;
        Some(reader)
    }
}
