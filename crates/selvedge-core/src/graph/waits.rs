//! Reads that make their threads wait.

use super::{Graph, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::{Function, Op};

impl Graph {
    /// Turns the last event of `thread` into a parked one if it is the `index`-th of the thread and a
    /// failed update of the sort that `tries_again`.
    pub fn park_if_alone(&mut self, thread: ThreadId, index: u32, tries_again: fn(Op) -> bool) {
        let events = &self.threads[thread.index()].events;
        if let Some(&last) = events.last()
            && events.len() == index as usize + 1
        {
            let event = &mut self.events[last as usize];
            if event.kind == Kind::Read && tries_again(event.op) {
                event.kind = Kind::Parked;
            }
        }
    }

    /// The newest write that the thread of the waiting read in `slot` does not distinguish from what it reads.
    /// A thread that is parked at an object waits at one write: it is parked at the next in another graph.
    pub fn waits_at(&self, location: Location, slot: Slot) -> Slot {
        let event = self.event(slot);
        let object = matches!(
            event.op,
            Op::Update {
                function: Function::Object(_),
                ..
            }
        );
        match event.kind == Kind::Parked && object {
            true => event.source,
            false => self.last_equal(location, event.source),
        }
    }

    /// The last of the updates in a row after `write`, which may be [`INIT`](super::INIT), that left its value as
    /// it was; `write` itself if there is none. A thread that waits for another value does not distinguish
    /// the writes of a row.
    pub fn last_equal(&self, location: Location, mut write: Slot) -> Slot {
        loop {
            let keeps = |&reader: &Slot| {
                let event = self.event(reader);
                event.kind == Kind::ReadHalf && event.wrote == event.read
            };
            let update = self.readers(location, write).find(keeps);
            let half = update.and_then(|reader| {
                let id = self.event(reader).id;
                self.thread(id.thread).get(id.index as usize + 1).copied()
            });
            match half {
                Some(half) => write = half,
                None => return write,
            }
        }
    }
}
