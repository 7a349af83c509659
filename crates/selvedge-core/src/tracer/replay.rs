//! Keeping the machine in step with the trace.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::{Flow, Search};
use crate::graph::{Kind, Slot};
use crate::ids::ThreadId;
use crate::machine::{Pending, SpinLoops, Stop};
use crate::op::Op;
use crate::report::{Ending, Observer, halted};
use crate::rewind::outcome;

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Lets the machine perform the events of the graph that it has not performed.
    pub(super) fn catch_up(&mut self) -> Flow {
        let Some(performed) = self.performed else {
            return self.replay();
        };
        let end = self.graph.len();
        let performs = |slot: &usize| self.graph.event(*slot as Slot).kind != Kind::ReadHalf;
        let Some(last) = (performed..end).rfind(performs) else {
            return ControlFlow::Continue(());
        };
        for slot in (performed..last).filter(performs) {
            let event = self.graph.event(slot as Slot);
            let clock = self.graph.causality(slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        let first = match self.graph.event(last as Slot).kind {
            Kind::WriteHalf => last - 1,
            _ => last,
        };
        self.performed = Some(first);
        self.resume(first as Slot)
    }

    /// Lets the machine perform the operation that begins in `slot`, the last one.
    pub(super) fn resume(&mut self, slot: Slot) -> Flow {
        if self.performed != Some(slot as usize) {
            return self.replay();
        }
        let last = match self.graph.event(slot).kind {
            Kind::ReadHalf => slot + 1,
            _ => slot,
        };
        let event = self.graph.event(last);
        let (thread, op) = (event.id.thread, event.op);
        self.machine
            .resume(thread, outcome(event), self.graph.causality(last));
        self.performed = Some(last as usize + 1);
        let threads = self.machine.threads();
        if self.pending.len() < threads {
            self.pending.resize(threads, Pending::Absent);
            self.graph.reserve_threads(threads);
        }
        self.check(thread)?;
        match op {
            Op::Create { child } => self.check(child),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Brings the machine to the graph.
    pub(super) fn replay(&mut self) -> Flow {
        self.performed = Some(self.graph.len());
        let graph = &self.graph;
        let clock = |slot| graph.causality(slot);
        let mismatch = self.machine.bring_to(graph, clock);
        let threads = self.machine.threads();
        self.graph.reserve_threads(threads);
        self.pending.clear();
        self.pending.resize(threads, Pending::Absent);
        for thread in (0..threads as u32).map(ThreadId) {
            self.check(thread)?;
        }
        // A race may be reported for a thread that had run further before.
        match mismatch {
            Err(mismatch) if !self.undefined => {
                ControlFlow::Break(Ending::Nondeterministic(mismatch))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Records the state of `thread`. Breaks if it ends the search.
    fn check(&mut self, thread: ThreadId) -> Flow {
        let pending = self.machine.pending(thread);
        self.pending[thread.index()] = pending;
        self.awaits.check(&*self.machine, thread);
        match pending {
            Pending::Stopped(Stop::Spinning { since }) => self.completed_iteration(thread, since),
            Pending::Stopped(stop) => match halted(&*self.machine, stop, &mut self.unrolled)? {
                Some(failure) => self.failed(failure),
                None => ControlFlow::Continue(()),
            },
            _ => ControlFlow::Continue(()),
        }
    }
}
