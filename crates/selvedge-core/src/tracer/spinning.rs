//! Executions that end with threads in loops that only wait.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::frame::{Attempt, NO_ATTEMPT, START};
use super::{Flow, Search, value_of};
use crate::graph::{INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Pending};
use crate::op::Op;
use crate::report::Observer;

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Counts an execution that ends with threads that wait in such loops.
    pub(super) fn finish_in_loops(&mut self) -> Flow {
        let threads = (0..self.pending.len() as u32).map(ThreadId);
        let waiting: Vec<(ThreadId, Op)> = threads
            .filter_map(|thread| match self.pending[thread.index()] {
                Pending::Op(op) if self.loops.repeats(thread) => Some((thread, op)),
                _ => None,
            })
            .collect();
        match self.spin(&waiting, self.graph.len())? {
            true => ControlFlow::Continue(()),
            false => {
                self.counts.blocked += 1;
                ControlFlow::Continue(())
            }
        }
    }

    /// Ends the execution, which had so many events, with each of these threads spinning on what
    /// may be newest, in every way. False if there is none. Where one of them replaces a value by
    /// itself, that is not a write of its own to the others, unless they have to come after it.
    fn spin(&mut self, waiting: &[(ThreadId, Op)], before: usize) -> Flow<bool> {
        let Some((&(thread, op), rest)) = waiting.split_first() else {
            self.catch_up()?;
            return self.finish_waiting();
        };
        let left = self.left_at(thread);
        let attempt = Attempt {
            left,
            old: left.map(|_| START),
            ..NO_ATTEMPT
        };
        self.go_round(thread, op, attempt, (rest, before))
    }

    /// The same where the first of them, which has made some of its reads, is about to perform
    /// `op`.
    fn go_round(
        &mut self,
        thread: ThreadId,
        op: Op,
        attempt: Attempt,
        (rest, before): (&[(ThreadId, Op)], usize),
    ) -> Flow<bool> {
        let Some(at) = op.location() else {
            return ControlFlow::Continue(false);
        };
        let events = self.graph.len();
        let initial = self.machine.initial(at);
        let id = self.graph.next_id(thread);
        let mut sources = Vec::new();
        self.model.sources(&self.graph, thread, at, &mut sources);
        let mut ended = false;
        for source in sources {
            let value = value_of(&self.graph, source, initial);
            let futile = self.loops.is_futile(&self.graph, id, value);
            if (futile && self.may_be_newest(at, source)
                || !futile
                    && (self.is_open(attempt, source) || self.was_futile(attempt, value).is_some()))
                && let Some(slot) = self.push(thread, op, source, 0, initial)
                && (source == INIT
                    || (source as usize) < before
                    || self.graph.event(slot).kind == Kind::ReadHalf)
            {
                self.catch_up()?;
                self.pass_fences(thread)?;
                if self.loops.gave_up(thread) {
                    ended |= self.spin(rest, before)?;
                } else if let Some(op) = self.reads_on(slot) {
                    let attempt = self.after(attempt, source);
                    ended |= self.go_round(thread, op, attempt, (rest, before))?;
                }
            }
            self.undo(events);
        }
        ControlFlow::Continue(ended)
    }

    fn may_be_newest(&mut self, at: Location, source: Slot) -> bool {
        let newest = (at, self.graph.last_equal(at, source));
        self.model.orders(&self.graph, &[newest]).is_some()
    }
}
