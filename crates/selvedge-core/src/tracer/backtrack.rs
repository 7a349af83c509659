//! Going back to what is still to be done.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::frame::{NOWHERE, Step};
use super::{Flow, Search};
use crate::graph::INIT;
use crate::machine::{Machine, Pending};
use crate::report::{Ending, Observer};

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Goes back to the latest point from which there is something new. False if there is none.
    pub(super) fn backtrack(&mut self) -> Flow<bool> {
        self.undefined = false;
        while self.depth > 0 {
            let frame = &mut self.frames[self.depth - 1];
            let events = frame.events;
            frame.slot = NOWHERE;
            self.undo(events);
            if self.frames[self.depth - 1].turn.is_some() {
                if self.backtrack_loop()? {
                    return ControlFlow::Continue(true);
                }
                self.close();
                continue;
            }
            if let Some(slot) = self.advance() {
                self.announce(slot);
                self.frames[self.depth - 1].slot = slot;
                self.catch_up()?;
                return ControlFlow::Continue(true);
            }
            self.undo(events);
            let mut steps = std::mem::take(&mut self.steps);
            let found = self.frames[self.depth - 1].schedules.pop(&mut steps);
            self.steps = steps;
            if !found {
                self.close();
            } else if self.run_schedule()? {
                return ControlFlow::Continue(true);
            }
        }
        ControlFlow::Continue(false)
    }

    /// Performs `steps`. False if they turn out to be inconsistent, or to leave a thread in its
    /// loop.
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
                let reason = format!("{thread} ended before it did what it did before");
                return ControlFlow::Break(Ending::Nondeterministic(reason));
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
                if !frame.waits {
                    frame.slot = slot;
                }
            }
            self.resume(slot)?;
            // A rival that only goes round in its loop takes nothing from anybody. Whether it does
            // may show only after a fence.
            self.pass_fences(thread)?;
            if self.loops.gave_up(thread) {
                return ControlFlow::Continue(false);
            }
            self.announce(slot);
        }
        ControlFlow::Continue(true)
    }
}
