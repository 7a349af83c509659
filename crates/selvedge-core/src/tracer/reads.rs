//! Reads: lines 5 to 9 of Algorithm 1, and Algorithm 3.
//!
//! A frame stands for one activation of these lines: it gives its operation each write of the graph
//! (line 8, [`advance`](Search::advance)), and then runs its schedules (line 9,
//! [`run_schedule`](Search::run_schedule)). Updates and choices have frames as well.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::frame::{Frame, NOWHERE, alternatives};
use super::schedules::Step;
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::{Pending, SpinLoops};
use crate::op::{Effect, Op};
use crate::report::{Ending, Observer};

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Opens a frame for the pending operation of `thread` (lines 6 and 7).
    pub(super) fn open(&mut self, thread: ThreadId, op: Op) {
        let (mut sources, mut schedules, mut iterations) = match self.frames.get_mut(self.depth) {
            Some(old) => (
                std::mem::take(&mut old.sources),
                std::mem::take(&mut old.schedules),
                std::mem::take(&mut old.iterations),
            ),
            None => Default::default(),
        };
        schedules.clear();
        iterations.clear();
        let mut initial = 0;
        let mut previous = NOWHERE;
        match op.location() {
            Some(at) => {
                initial = self.machine.initial(at);
                self.model.sources(&self.graph, thread, at, &mut sources);
                previous = self.latest.of(at);
                self.latest.set(at, self.depth as u32);
            }
            None => {
                sources.clear();
                sources.push(INIT);
            }
        }
        let frame = Frame {
            events: self.graph.len(),
            thread,
            index: self.graph.next_id(thread).index,
            op,
            initial,
            previous,
            slot: NOWHERE,
            blocking: false,
            awaits: None,
            skipped: false,
            iterations,
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

    /// Closes the last frame.
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        let frame = &self.frames[self.depth];
        if let Some(at) = frame.location() {
            self.latest.set(at, frame.previous);
        }
        let number = self.depth as u32;
        self.awaits.frames.pop_if(|first| *first == number);
    }

    /// Removes the operation of the last frame and all events after it from the graph.
    pub(super) fn rewind(&mut self) {
        let frame = &mut self.frames[self.depth - 1];
        frame.slot = NOWHERE;
        let events = frame.events;
        self.undo(events);
    }

    /// Drops the writes on which the blocking update of the last frame stays blocked, or which
    /// another update has taken. Whether exactly one is left, and the update takes it.
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

    /// Gives the operation of the last frame the next write of the graph, or the next choice, that
    /// is consistent (line 8). The graph must be as it was when the frame was opened.
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

    /// Goes back to the last frame with something left to explore, and begins with it: the rest of
    /// the loops in lines 8 and 9. False if there is none.
    pub(super) fn backtrack(&mut self) -> Flow<bool> {
        self.undefined = false;
        while self.depth > 0 {
            self.rewind();
            if self.frames[self.depth - 1].awaits.is_some() {
                if self.backtrack_await()? {
                    return ControlFlow::Continue(true);
                }
                self.close();
                continue;
            }
            if let Some(slot) = self.advance() {
                self.declare(slot);
                self.frames[self.depth - 1].slot = slot;
                self.catch_up()?;
                return ControlFlow::Continue(true);
            }
            let frame = &mut self.frames[self.depth - 1];
            if !frame.schedules.pop(&mut self.steps) {
                self.close();
            } else if self.run_schedule()? {
                return ControlFlow::Continue(true);
            }
        }
        ControlFlow::Continue(false)
    }

    /// Algorithm 3, RunSchedule: performs `steps` from where the last frame was opened. False if
    /// they turn out to be inconsistent, or to leave a thread in an await loop.
    ///
    /// Reads of the schedule have no frames, which is what `Swappable(e) = false` means in the
    /// paper. Deviation: the last one, the read of the frame, stays swappable.
    fn run_schedule(&mut self) -> Flow<bool> {
        self.catch_up()?;
        for index in 0..self.steps.len() {
            if self.undefined {
                break;
            }
            let Step {
                thread,
                source,
                choice,
            } = self.steps[index];
            self.pass_fences(thread)?;
            let Pending::Op(op) = self.pending[thread.index()] else {
                let reason = format!("{thread} ended earlier than when it was run before");
                return ControlFlow::Break(Ending::Nondeterministic(reason.into()));
            };
            let source = match source {
                None => INIT,
                Some(id) => self.graph.thread(id.thread)[id.index as usize],
            };
            let initial = op.location().map_or(0, |at| self.machine.initial(at));
            let Some(slot) = self.push(thread, op, source, choice, initial) else {
                return ControlFlow::Continue(false);
            };
            if index + 1 == self.steps.len() {
                let frame = &mut self.frames[self.depth - 1];
                if !frame.blocking {
                    frame.slot = slot;
                }
            }
            self.resume(slot)?;
            // Whether an iteration stays in its loop may show only after a fence.
            self.pass_fences(thread)?;
            if self.awaits.stays(thread) {
                return ControlFlow::Continue(false);
            }
            self.declare(slot);
        }
        ControlFlow::Continue(true)
    }
}
