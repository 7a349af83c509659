//! Executions that end with threads at awaits.

use std::ops::ControlFlow;

use crate::graph::{INIT, Kind};
use crate::ids::ThreadId;
use crate::machine::{Pending, SpinLoops};
use crate::op::Op;
use crate::report::Observer;
use crate::tracer::consistency::Consistency;
use crate::tracer::{Flow, Search};

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Counts an execution that ends with threads at awaits. Each way in which all of them wait
    /// forever is an execution; if there is none, the execution is blocked.
    pub(in crate::tracer) fn finish_at_awaits(&mut self) -> Flow {
        let threads = (0..self.pending.len() as u32).map(ThreadId);
        let waiting: Vec<(ThreadId, Op)> = threads
            .filter_map(|thread| match self.pending[thread.index()] {
                Pending::Op(op) if self.awaits.at_await(thread) => Some((thread, op)),
                _ => None,
            })
            .collect();
        let waits_forever = self.wait_forever(&waiting, self.graph.len())?;
        self.counts.blocked += u64::from(!waits_forever);
        ControlFlow::Continue(())
    }

    /// Ends the execution, which has `events` events without them, with a last iteration of each of
    /// these threads that stays in its loop, in every way. False if there is none.
    fn wait_forever(&mut self, waiting: &[(ThreadId, Op)], events: usize) -> Flow<bool> {
        let Some((&(thread, op), rest)) = waiting.split_first() else {
            self.catch_up()?;
            return self.finish_waiting();
        };
        let skipped_in = self.skipped_in(thread);
        self.stay(thread, op, skipped_in, (rest, events))
    }

    /// The same where the next read of the first thread's iteration is `op`.
    fn stay(
        &mut self,
        thread: ThreadId,
        op: Op,
        skipped_in: Option<u32>,
        (rest, events): (&[(ThreadId, Op)], usize),
    ) -> Flow<bool> {
        let Some(at) = op.location() else {
            return ControlFlow::Continue(false);
        };
        let before = self.graph.len();
        let initial = self.machine.initial(at);
        let id = self.graph.next_id(thread);
        let mut sources = Vec::new();
        self.model.sources(&self.graph, thread, at, &mut sources);
        let mut stays = false;
        for source in sources {
            // An update of an iteration that stays in its loop writes the value it read. Other
            // threads read the write before, unless they are updates themselves.
            if !self.left_before_skip(skipped_in, id, source)
                && let Some(slot) = self.push(thread, op, source, 0, initial)
                && (source == INIT
                    || (source as usize) < events
                    || self.graph.event(slot).kind == Kind::ReadHalf)
            {
                self.catch_up()?;
                self.pass_fences(thread)?;
                if self.awaits.stays(thread) {
                    stays |= self.wait_forever(rest, events)?;
                } else if let Some((op, _)) = self.reads_on(slot) {
                    stays |= self.stay(thread, op, skipped_in, (rest, events))?;
                }
            }
            self.undo(before);
        }
        ControlFlow::Continue(stays)
    }
}
