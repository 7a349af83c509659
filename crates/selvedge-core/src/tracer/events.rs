//! Adding events to the trace and removing them.

use super::consistency::Consistency;
use super::{Search, value_of};
use crate::graph::{Event, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::SpinLoops;
use crate::op::{Effect, Op, Value};
use crate::report::Observer;

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Adds the events of an operation. `None` if the trace becomes inconsistent or the operation is
    /// blocked; the caller then calls [`undo`](Search::undo).
    pub(super) fn push(
        &mut self,
        thread: ThreadId,
        op: Op,
        source: Slot,
        choice: u32,
        initial: Value,
    ) -> Option<Slot> {
        let id = self.graph.next_id(thread);
        let (at, function) = match op {
            Op::Load { at, .. } => (at, None),
            Op::Update { at, function, .. } => (at, Some(function)),
            Op::Store { at, value, .. } => {
                let mut event = Event::new(id, Kind::Write, op);
                event.wrote = value;
                return self.push_write(event, at);
            }
            Op::Fence { .. } | Op::Create { .. } | Op::Join { .. } | Op::JoinAll => {
                return self.push_silent(Event::new(id, Kind::Silent, op));
            }
            Op::Choose { .. } => {
                let mut event = Event::new(id, Kind::Silent, op);
                event.choice = choice;
                event.read = Value::from(choice);
                return self.push_silent(event);
            }
        };
        let read = value_of(&self.graph, source, initial);
        let wrote = match function {
            None => None,
            Some(function) => match function.apply(read) {
                Effect::Block => return None,
                Effect::Keep => None,
                Effect::Write(value) => Some(value),
                Effect::Choose(_) => Some(function.choose(read, choice)),
            },
        };
        let kind = match wrote {
            Some(_) => Kind::ReadHalf,
            None => Kind::Read,
        };
        let mut event = Event::new(id, kind, op);
        event.read = read;
        event.wrote = wrote.unwrap_or(0);
        event.choice = choice;
        let slot = self.graph.push_read(at, event, source);
        if !self.model.added(&self.graph, slot) {
            return None;
        }
        if let Some(value) = wrote {
            let mut half = Event::new(self.graph.next_id(thread), Kind::WriteHalf, op);
            half.read = read;
            half.wrote = value;
            self.push_write(half, at)?;
        }
        Some(slot)
    }

    fn push_write(&mut self, event: Event, at: Location) -> Option<Slot> {
        let end = self.graph.coherence(at).len();
        let slot = self.graph.push_write(at, event, end);
        self.model.added(&self.graph, slot).then_some(slot)
    }

    fn push_silent(&mut self, event: Event) -> Option<Slot> {
        self.graph.reserve_threads(self.machine.threads());
        let slot = self.graph.push_silent(event);
        self.model.added(&self.graph, slot).then_some(slot)
    }

    /// Removes all but the first `events` events.
    pub(super) fn undo(&mut self, events: usize) {
        if self.graph.len() <= events {
            return;
        }
        self.model.undo(&self.graph, events);
        self.performed = self.performed.filter(|&performed| performed <= events);
        while let Some(event) = self.graph.events().last()
            && self.graph.len() > events
        {
            self.awaits.removed(event);
            self.graph.pop();
        }
    }
}
