//! Beginning with operations that can go on in several ways, and going on in the next one.

use super::consistency::Consistency;
use super::frame::{Frame, NO_ATTEMPT, NOWHERE, Paths, Schedules, alternatives};
use super::{Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::Machine;
use crate::op::{Effect, Op};
use crate::report::Observer;

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Begins a frame for the pending operation of `thread`.
    pub(super) fn open(&mut self, thread: ThreadId, op: Op) {
        let initial = op.location().map_or(0, |at| self.machine.initial(at));
        let mut schedules = Schedules::default();
        let mut sources = Vec::new();
        let mut paths = Paths::default();
        let mut watched = Vec::new();
        let mut written = Vec::new();
        if let Some(old) = self.frames.get_mut(self.depth) {
            schedules = std::mem::take(&mut old.schedules);
            schedules.clear();
            sources = std::mem::take(&mut old.sources);
            paths = std::mem::take(&mut old.paths);
            paths.clear();
            watched = std::mem::take(&mut old.watched);
            watched.clear();
            written = std::mem::take(&mut old.written);
            written.clear();
        }
        match op.location() {
            Some(at) => self.model.sources(&self.graph, thread, at, &mut sources),
            None => {
                sources.clear();
                sources.push(INIT);
            }
        }
        let number = self.depth as u32;
        let previous = op.location().map_or(NOWHERE, |at| {
            let previous = self.latest.of(at);
            self.latest.set(at, number);
            previous
        });
        let frame = Frame {
            events: self.graph.len(),
            thread,
            index: self.graph.next_id(thread).index,
            op,
            initial,
            previous,
            slot: NOWHERE,
            waits: false,
            turn: None,
            attempt: NO_ATTEMPT,
            paths,
            watched,
            written,
            sources,
            next_choice: 0,
            schedules,
        };
        if self.depth == self.frames.len() {
            self.frames.push(frame);
        } else {
            self.frames[self.depth] = frame;
        }
        self.depth += 1;
    }

    /// Forgets the last frame.
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        let frame = &self.frames[self.depth];
        if let Some(at) = frame.location() {
            self.latest.set(at, frame.previous);
        }
        self.watching.pop_if(|first| *first == self.depth as u32);
    }

    /// Whether there is exactly one write that lets a waiting operation through, and it would take
    /// that write. Leaves only writes that it could read to be tried.
    pub(super) fn has_one_source(&mut self, at: Location) -> bool {
        let frame = &mut self.frames[self.depth - 1];
        let Op::Update { function, .. } = frame.op else {
            return false;
        };
        let graph = &self.graph;
        let mut keeps = false;
        frame.sources.retain(|&source| {
            let value = value_of(graph, source, frame.initial);
            match function.apply(value) {
                Effect::Block => false,
                Effect::Keep => {
                    keeps = true;
                    true
                }
                Effect::Write(_) | Effect::Choose(_) => {
                    let mut readers = graph.readers(at, source);
                    !readers.any(|reader| graph.event(reader).kind == Kind::ReadHalf)
                }
            }
        });
        frame.sources.len() == 1 && !keeps
    }

    /// Gives the operation of the last frame the next write, or the next choice, that is
    /// consistent. The graph must be as it was when the frame was opened.
    pub(super) fn advance(&mut self) -> Option<Slot> {
        loop {
            let frame = &mut self.frames[self.depth - 1];
            let source = *frame.sources.last()?;
            let choice = frame.next_choice;
            let value = value_of(&self.graph, source, frame.initial);
            if choice >= alternatives(&frame.op, value) {
                frame.sources.pop();
                frame.next_choice = 0;
                continue;
            }
            frame.next_choice += 1;
            let (thread, op, initial, events) =
                (frame.thread, frame.op, frame.initial, frame.events);
            match self.push(thread, op, source, choice, initial) {
                Some(slot) => return Some(slot),
                None => self.undo(events),
            }
        }
    }
}
