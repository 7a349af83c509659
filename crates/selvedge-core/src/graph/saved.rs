//! Graphs as values that another process can take up.
//!
//! A saved graph contains no addresses, values or location numbers: the machine tells the operations of each thread
//! when the graph is [performed](SavedGraph::perform), and the value of a read follows from its source. So a saved
//! graph means the same in every process that runs the program.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::{Event, Graph, INIT, Kind, NONE, Next, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::machine::{Machine, Outcome, Pending};
use crate::op::{Effect, Op, Value};

/// The first events of a graph, with everything that neither the machine nor the other events tell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SavedGraph {
    events: Vec<SavedEvent>,
    /// How many threads a clock counts.
    threads: usize,
    /// The clocks of causality, one after the other.
    causality: Vec<u32>,
    /// For each location, the writes to it in coherence order.
    coherence: Vec<Vec<Slot>>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct SavedEvent {
    thread: ThreadId,
    kind: Kind,
    /// The sort of operation, to notice a program that does something else.
    sort: u8,
    source: Option<Slot>,
    choice: u32,
    woken_from: Option<Slot>,
    next: Next,
}

/// The events of a saved graph as they are in this process.
#[derive(Debug, Default)]
pub struct Performed {
    pub(crate) events: Vec<Event>,
    /// The initial value of the location of each event.
    pub(crate) initial: Vec<Value>,
}

impl SavedGraph {
    /// Saves the first `events` events of `graph`. The reads among them read from writes among them.
    pub fn of(graph: &Graph, events: usize) -> SavedGraph {
        let causality = (0..events as Slot).flat_map(|slot| graph.causality(slot).iter().copied());
        let coherence = graph.locations().iter();
        let coherence = coherence.map(|&location| graph.coherence(location).to_vec());
        let mut saved = SavedGraph {
            events: graph.events()[..events]
                .iter()
                .map(SavedEvent::of)
                .collect(),
            threads: graph.threads(),
            causality: causality.collect(),
            coherence: coherence.collect(),
        };
        saved.truncate(events);
        saved
    }

    /// Keeps the first `events` events.
    pub fn truncate(&mut self, events: usize) {
        self.events.truncate(events);
        self.causality.truncate(events.saturating_mul(self.threads));
        for writes in &mut self.coherence {
            writes.retain(|&write| (write as usize) < events);
        }
        self.coherence.retain(|writes| !writes.is_empty());
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Has the machine do what was saved, in some order that respects causality, and tells the
    /// events. The machine is told that every event happens before all that are performed later: the
    /// search performs the graph again and looks for races then.
    pub fn perform<M: Machine>(&self, machine: &mut M) -> Result<Performed, String> {
        let mut run = Run {
            saved: self,
            threads: vec![Vec::new(); self.threads],
            done: vec![0; self.threads],
            events: vec![None; self.len()],
            initial: vec![0; self.len()],
        };
        for (slot, event) in self.events.iter().enumerate() {
            let thread = run.threads.get_mut(event.thread.index());
            thread.ok_or_else(damaged)?.push(slot as Slot);
        }
        machine.reset();
        while run.advance(machine)? {}
        let events: Option<Vec<Event>> = run.events.into_iter().collect();
        let performed = Performed {
            events: events.ok_or_else(|| "an execution could not be repeated".to_owned())?,
            initial: run.initial,
        };
        self.check_locations(&performed)?;
        Ok(performed)
    }

    /// Makes sure that writes are to one location where they were so before, and to others otherwise.
    fn check_locations(&self, performed: &Performed) -> Result<(), String> {
        let mut seen = HashSet::new();
        for writes in &self.coherence {
            let mut locations = writes.iter().map(|&write| performed.location(write));
            let first = locations.next().flatten();
            if locations.any(|location| location != first) || !seen.insert(first) {
                let last = writes
                    .last()
                    .map(|&write| &performed.events[write as usize]);
                return Err(otherwise(last.map_or(ThreadId::MAIN, |e| e.id.thread)));
            }
        }
        Ok(())
    }
}

impl SavedEvent {
    fn of(event: &Event) -> SavedEvent {
        SavedEvent {
            thread: event.id.thread,
            kind: event.kind,
            sort: sort(&event.op),
            source: (event.source != NONE && event.source != INIT).then_some(event.source),
            choice: event.choice,
            woken_from: event.woken_from,
            next: event.next,
        }
    }
}

fn sort(op: &Op) -> u8 {
    match op {
        Op::Load { .. } => 0,
        Op::Store { .. } => 1,
        Op::Update { .. } => 2,
        Op::Fence { .. } => 3,
        Op::Create { .. } => 4,
        Op::Join { .. } => 5,
        Op::JoinAll => 6,
        Op::Choose { .. } => 7,
    }
}

fn damaged() -> String {
    "a work unit is damaged".to_owned()
}

/// A saved graph on the way to be performed.
struct Run<'a> {
    saved: &'a SavedGraph,
    /// The slots of each thread.
    threads: Vec<Vec<Slot>>,
    /// How many of them were performed.
    done: Vec<u32>,
    events: Vec<Option<Event>>,
    initial: Vec<Value>,
}

impl Run<'_> {
    /// Lets each thread go on as far as it gets. False if no thread did anything.
    fn advance<M: Machine>(&mut self, machine: &mut M) -> Result<bool, String> {
        let mut progress = false;
        for thread in (0..self.threads.len() as u32).map(ThreadId) {
            while let Some(&slot) = self.threads[thread.index()]
                .get(self.done[thread.index()] as usize)
                .filter(|&&slot| self.events[slot as usize].is_none())
            {
                if !self.step(machine, thread, slot)? {
                    break;
                }
                progress = true;
            }
        }
        Ok(progress)
    }

    /// Performs the event in `slot`, the next one of `thread`. False if its causes are not there yet.
    fn step<M: Machine>(
        &mut self,
        machine: &mut M,
        thread: ThreadId,
        slot: Slot,
    ) -> Result<bool, String> {
        let saved = self.saved.events[slot as usize];
        let op = match machine.pending(thread) {
            Pending::Op(op) => op,
            Pending::Absent => return Ok(false),
            Pending::Stopped(_) => return Err(otherwise(thread)),
        };
        if sort(&op) != saved.sort {
            return Err(otherwise(thread));
        }
        if !crate::machine::may_join(machine, thread, op) {
            return Ok(false);
        }
        let index = self.done[thread.index()];
        let id = EventId { thread, index };
        let mut event = Event::new(id, saved.kind, op);
        event.choice = saved.choice;
        event.woken_from = saved.woken_from;
        event.next = saved.next;
        if let Some(at) = op.location() {
            self.initial[slot as usize] = machine.initial(at);
        }
        let mut half = None;
        match (saved.kind, op) {
            (Kind::Read | Kind::ReadHalf | Kind::Parked, Op::Load { .. } | Op::Update { .. }) => {
                event.source = saved.source.unwrap_or(INIT);
                event.read = match saved.source {
                    None => self.initial[slot as usize],
                    Some(source) => match self.events.get(source as usize).ok_or_else(damaged)? {
                        Some(source) => source.wrote,
                        None => return Ok(false),
                    },
                };
                if saved.kind == Kind::ReadHalf {
                    event.wrote = written(op, event.read, saved.choice, thread)?;
                    half = Some(event.wrote);
                }
            }
            (Kind::Write, Op::Store { value, .. }) => event.wrote = value,
            (Kind::Silent, Op::Choose { .. }) => event.read = Value::from(saved.choice),
            (Kind::Silent, Op::Fence { .. } | Op::Create { .. } | Op::Join { .. })
            | (Kind::Silent, Op::JoinAll) => {}
            _ => return Err(otherwise(thread)),
        }
        self.events[slot as usize] = Some(event);
        let write = self.threads[thread.index()]
            .get(index as usize + 1)
            .copied();
        let performed = match (saved.kind, half, write) {
            // Its thread waits, or its write half is still to be placed.
            (Kind::Parked, ..) | (_, Some(_), None) => return Ok(true),
            (_, Some(wrote), Some(write)) => {
                self.add_half(&event, wrote, write)?;
                2
            }
            _ => 1,
        };
        self.done[thread.index()] += performed;
        let outcome = Outcome {
            read: event.read,
            wrote: half,
        };
        machine.resume(thread, outcome, &self.done);
        Ok(true)
    }

    /// The write half of an update.
    fn add_half(&mut self, read: &Event, wrote: Value, slot: Slot) -> Result<(), String> {
        let saved = self.saved.events[slot as usize];
        if saved.kind != Kind::WriteHalf {
            return Err(damaged());
        }
        let EventId { thread, index } = read.id;
        let index = index + 1;
        let mut event = Event::new(EventId { thread, index }, Kind::WriteHalf, read.op);
        event.read = read.read;
        event.wrote = wrote;
        event.next = saved.next;
        self.events[slot as usize] = Some(event);
        Ok(())
    }
}

/// The value that an update writes if it reads `value`.
fn written(op: Op, value: Value, choice: u32, thread: ThreadId) -> Result<Value, String> {
    let Op::Update { function, .. } = op else {
        return Err(otherwise(thread));
    };
    match function.apply(value) {
        Effect::Write(wrote) => Ok(wrote),
        Effect::Choose(alternatives) if choice < alternatives => Ok(function.choose(value, choice)),
        _ => Err(otherwise(thread)),
    }
}

#[cold]
fn otherwise(thread: ThreadId) -> String {
    format!(
        "{thread} did something else when it was run again: the program does not depend on its \
         schedule alone"
    )
}

impl Graph {
    /// Becomes what was saved, without what can be added to it again: the events from `events` on,
    /// which read what was there before them.
    pub(crate) fn load(&mut self, saved: &SavedGraph, performed: &Performed, events: usize) {
        self.clear();
        self.reserve_threads(saved.threads);
        for (slot, event) in performed.events[..events].iter().enumerate() {
            self.threads[event.id.thread.index()]
                .events
                .push(slot as Slot);
            if let Op::Create { child } = event.op {
                self.reserve_threads(child.index() + 1);
                self.threads[child.index()].creation = slot as Slot;
            }
            let start = slot * saved.threads;
            let clock = &saved.causality[start..start + saved.threads];
            self.causality.push(clock);
            self.events.push(*event);
        }
        for writes in &saved.coherence {
            let writes = writes.iter().filter(|&&write| (write as usize) < events);
            for &write in writes {
                if let Some(location) = performed.location(write) {
                    self.touch(location);
                    self.locations[location.index()].coherence.push(write);
                }
            }
        }
        for slot in 0..events {
            let event = &self.events[slot];
            if let Some(location) = event.op.location().filter(|_| event.kind.reads()) {
                let source = event.source;
                self.touch(location);
                self.locations[location.index()].reads.push(slot as Slot);
                self.link_reader(location, slot as Slot, source);
            }
        }
    }

    /// Adds the next event of what was saved.
    pub(crate) fn push_saved(&mut self, saved: &SavedGraph, performed: &Performed) -> Slot {
        let slot = self.events.len();
        let event = performed.events[slot];
        let Some(location) = event.op.location() else {
            return self.push_silent(event);
        };
        if event.kind.reads() {
            return self.push_read(location, event, event.source);
        }
        let of = |writes: &&Vec<Slot>| performed.location(writes[0]) == Some(location);
        let writes = saved.coherence.iter().find(of);
        let writes = writes.expect("the location of a write has a coherence order");
        let before = writes.iter().take_while(|&&write| write as usize != slot);
        let position = before.filter(|&&write| (write as usize) < slot).count();
        self.push_write(location, event, position)
    }
}

impl Performed {
    fn location(&self, slot: Slot) -> Option<Location> {
        self.events[slot as usize].op.location()
    }
}
