//! Continues in place, without a replay, where the machine is already at the graph.
//!
//! A pure iteration ends in the state that it began in. So a thread that spins after a single read is about to make that
//! read again ([`SpinLoops::retry`]), and the read can be given another value where the thread stands. That serves twice:
//! * A value that made threads spin before is tried as soon as there is a read that could see it besides
//!   newer ones, while the machine stands there anyway. If the thread spins, no execution has to be begun for that.
//! * A thread that waits, at a mutex or in a loop, goes on when the write comes that wakes it.

use std::ops::ControlFlow;

use super::branch::ReadBranch;
use super::{Ending, Level, Observer, Search};
use crate::graph::{Kind, Slot};
use crate::machine::{Pending, SpinLoops, Stop};
use crate::model::Model;
use crate::rewind::outcome;

impl<C: Model, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Sees whether the read that the machine stands before makes its thread spin if it sees an older value that did
    /// so before.
    pub(super) fn try_spinning(&mut self, branch: &mut ReadBranch) -> ControlFlow<Ending> {
        let (thread, location) = (branch.thread, branch.location);
        let site = self.machine.site(thread);
        if !self.hints.spins.knows(site) {
            return ControlFlow::Continue(());
        }
        let level = self.cursor.level_mut();
        let spins = |value| self.hints.spins.expected(site, value);
        let Some(read) = branch.perhaps_futile(&level.graph, spins) else {
            return ControlFlow::Continue(());
        };
        if !self.machine.can_retry(location) {
            return ControlFlow::Continue(());
        }
        let events = level.graph.len();
        let event = read.push(level, thread, branch.op, location);
        let clock = level.model.happens_before(&level.graph, events as Slot);
        self.machine.resume(thread, outcome(&event), clock);
        level.undo(events);
        let since = event.id.index;
        let spins = self.machine.pending(thread) == Pending::Stopped(Stop::Spinning { since });
        if spins && self.machine.quiet(thread) {
            self.machine.retry(thread);
            branch.spins_at(event.read);
            return ControlFlow::Continue(());
        }
        self.hints.spins.went_on(site, event.read);
        self.replay()
    }

    /// If all that was done since the graph of level `depth` had `events` events was to add a write that wakes a
    /// parked update, takes these steps. The machine stands before them.
    pub(super) fn wake(&mut self, (depth, events): (usize, usize)) -> ControlFlow<Ending, bool> {
        let (below, above) = (&self.cursor.levels[depth], self.cursor.level());
        if self.cursor.depth != depth + 1 || below.graph.len() != events {
            return ControlFlow::Continue(false);
        }
        let &[write, half] = &above.graph.events()[events.min(above.graph.len())..] else {
            return ControlFlow::Continue(false);
        };
        let waiter = half.id.thread;
        let parked = below.graph.last(waiter).map(|last| below.graph.event(last));
        let Some(parked) = parked.filter(|event| event.kind == Kind::Parked) else {
            return ControlFlow::Continue(false);
        };
        let writes = write.kind == Kind::Write && half.kind == Kind::WriteHalf;
        if !writes || half.id.index != parked.id.index + 1 {
            return ControlFlow::Continue(false);
        }
        match (self.machine.pending(waiter), parked.op.location()) {
            (Pending::Op(_), _) => {}
            (Pending::Stopped(Stop::Spinning { .. }), Some(location))
                if self.machine.can_retry(location) =>
            {
                self.machine.retry(waiter);
            }
            _ => return ControlFlow::Continue(false),
        }
        self.hints.schedule.forget();
        let Level { graph, model, .. } = above;
        for slot in [events, events + 1] {
            let event = graph.event(slot as Slot);
            let clock = model.happens_before(graph, slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        self.check_all()?;
        ControlFlow::Continue(true)
    }
}
