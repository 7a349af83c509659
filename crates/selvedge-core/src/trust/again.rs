//! Going on without a replay, where the machine stands where the graph goes on.
//!
//! A pure iteration ends in the state that it began in. So a thread that spins after a single read is about to make that
//! read again ([`Machine::retry`]), and the read can be given another value where the thread stands. That serves twice:
//! * A value that made threads spin before is tried as soon as there is a read that could see it besides
//!   newer ones, while the machine stands there anyway. If the thread spins, no execution has to be begun for that.
//! * A thread that waits, at a mutex or in a loop, goes on when the write comes that wakes it.

use std::ops::ControlFlow;

use super::branch::ReadBranch;
use super::{Ending, Level, Observer, Search};
use crate::graph::{Kind, Slot};
use crate::ids::Site;
use crate::machine::{Machine, Pending, Stop};
use crate::model::Model;
use crate::op::Value;
use crate::rewind::outcome;

/// How many values to remember.
const REMEMBERED: usize = 64;

/// Values that threads were seen to spin on, touching nothing else.
#[derive(Debug, Default)]
pub(crate) struct Spins(Vec<Spin>);

#[derive(Debug)]
struct Spin {
    site: Site,
    value: Value,
    /// False once a thread went on with it.
    always: bool,
}

impl Spins {
    /// A thread spins, having read `value` at `site`.
    pub(crate) fn note(&mut self, site: Site, value: Value) {
        if self.0.len() < REMEMBERED && self.find(site, value).is_none() {
            let always = true;
            self.0.push(Spin {
                site,
                value,
                always,
            });
        }
    }

    fn find(&self, site: Site, value: Value) -> Option<usize> {
        let mut spins = self.0.iter();
        spins.position(|spin| (spin.site, spin.value) == (site, value))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a thread that reads `value` at `site` has always spun.
    pub(crate) fn expected(&self, site: Site, value: Value) -> bool {
        self.find(site, value).is_some_and(|at| self.0[at].always)
    }

    fn went_on(&mut self, site: Site, value: Value) {
        if let Some(at) = self.find(site, value) {
            self.0[at].always = false;
        }
    }
}

impl<C: Model, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Sees whether the read that the machine stands before makes its thread spin if it sees an older value that did
    /// so before.
    pub(super) fn try_spinning(&mut self, branch: &mut ReadBranch) -> ControlFlow<Ending> {
        let (thread, location) = (branch.thread, branch.location);
        let site = self.machine.site(thread);
        if !self.spins.0.iter().any(|spin| spin.site == site) {
            return ControlFlow::Continue(());
        }
        let level = &mut self.levels[self.depth];
        let spins = |value| self.spins.expected(site, value);
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
        self.spins.went_on(site, event.read);
        self.replay()
    }

    /// If all that was done since the graph of level `depth` had `events` events was to add a write that wakes a
    /// parked update, takes these steps. The machine stands before them.
    pub(super) fn wake(&mut self, (depth, events): (usize, usize)) -> ControlFlow<Ending, bool> {
        let (below, above) = (&self.levels[depth], &self.levels[self.depth]);
        if self.depth != depth + 1 || below.graph.len() != events {
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
        self.schedule.forget();
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
