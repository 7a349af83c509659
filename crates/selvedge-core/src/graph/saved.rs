//! Graphs as values that outlive the search they come from.

use serde::{Deserialize, Serialize};

use super::{Event, Graph, NONE, Slot};
use crate::ids::Location;
use crate::op::Op;

/// The first events of a graph, with everything that is not implied by them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SavedGraph {
    events: Vec<Event>,
    /// How many threads a clock counts.
    threads: usize,
    /// The clocks of causality, one after the other.
    causality: Vec<u32>,
    /// The writes to each location in coherence order.
    coherence: Vec<(Location, Vec<Slot>)>,
}

impl SavedGraph {
    /// Saves the first `events` events of `graph`. The reads among them read from writes among them.
    pub fn of(graph: &Graph, events: usize) -> SavedGraph {
        let causality = (0..events as Slot).flat_map(|slot| graph.causality(slot).iter().copied());
        let coherence = graph.locations().iter().map(|&location| {
            let writes = graph.coherence(location).iter().copied();
            (location, writes.collect())
        });
        let mut saved = SavedGraph {
            events: graph.events()[..events].to_vec(),
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
        self.causality.truncate(events * self.threads);
        for (_, writes) in &mut self.coherence {
            writes.retain(|&write| (write as usize) < events);
        }
        self.coherence.retain(|(_, writes)| !writes.is_empty());
    }

    /// How many events it has.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Event {
    /// The event without its readers.
    fn alone(&self) -> Event {
        Event {
            first_reader: NONE,
            next_reader: NONE,
            ..*self
        }
    }
}

impl Graph {
    /// Becomes what was saved, without what can be added to it again: the events from `events` on,
    /// which read what was there before them.
    pub fn load(&mut self, saved: &SavedGraph, events: usize) {
        self.clear();
        self.reserve_threads(saved.threads);
        for (slot, event) in saved.events[..events].iter().enumerate() {
            let event = event.alone();
            self.threads[event.id.thread.index()]
                .events
                .push(slot as Slot);
            if let Op::Create { child } = event.op {
                self.threads[child.index()].creation = slot as Slot;
            }
            let start = slot * saved.threads;
            self.causality
                .push(&saved.causality[start..start + saved.threads]);
            self.events.push(event);
        }
        for &(location, ref writes) in &saved.coherence {
            let writes = writes.iter().filter(|&&write| (write as usize) < events);
            for &write in writes {
                self.touch(location);
                self.locations[location.index()].coherence.push(write);
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
    pub fn push_saved(&mut self, saved: &SavedGraph) -> Slot {
        let slot = self.events.len();
        let event = saved.events[slot].alone();
        let Some(location) = event.op.location() else {
            return self.push_silent(event);
        };
        if event.kind.reads() {
            return self.push_read(location, event, event.source);
        }
        let at = saved.coherence.iter().find(|(at, _)| *at == location);
        let (_, writes) = at.expect("the location of a write has a coherence order");
        let before = writes.iter().take_while(|&&write| write as usize != slot);
        let position = before.filter(|&&write| (write as usize) < slot).count();
        self.push_write(location, event, position)
    }
}
