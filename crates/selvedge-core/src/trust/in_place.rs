//! Saves replays for threads that wait, where the machine is already at the graph.
//!
//! A pure iteration ends in the state that it began in. This is used in two ways:
//! * *Passing over*: a thread that spins at the newest values is taken back to before its iteration, and is passed over
//!   until there is a newer value to read.
//! * *Retrying*: a thread that spins after a single read is about to repeat that read ([`SpinLoops::retry`]), which can
//!   be given another value where the thread stands. So a value that made threads spin before is tried as soon as a read
//!   could see it besides newer ones: if the thread spins, no execution has to be begun for that. And a thread that
//!   waits, at a mutex or in a loop, continues in place when the write that wakes it is added.

use std::ops::ControlFlow;

use super::branch::ReadBranch;
use super::{Ending, Level, Observer, Search};
use crate::graph::{Event, Kind, Slot};
use crate::ids::ThreadId;
use crate::machine::{Pending, SpinLoops, Stop};
use crate::model::Model;
use crate::rewind::outcome;
use crate::spins::may_drop_iteration;

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

    /// Takes back the iteration that `thread` has just completed, if it spins at the newest values and its events are
    /// the last ones of the graph. The iteration is added again when one of the locations has a newer write, or when
    /// no other thread can go on. Tells whether it was taken back.
    pub(super) fn defer(&mut self, thread: ThreadId) -> ControlFlow<Ending, bool> {
        let Pending::Stopped(Stop::Spinning { since }) = self.machine.pending(thread) else {
            return ControlFlow::Continue(false);
        };
        let graph = self.cursor.graph();
        let iteration = &graph.thread(thread)[since as usize..];
        let &[first, ..] = iteration else {
            return ControlFlow::Continue(false);
        };
        let events = first as usize;
        let alone = events + iteration.len() == graph.len();
        let newest = |event: &Event| match (event.kind, event.op.location()) {
            (Kind::Read, Some(at)) => event.source == graph.newest(at),
            (kind, _) => kind == Kind::Silent && event.choice == 0,
        };
        // Random descents have used the alternatives to earlier reads already.
        let spread = self.cursor.sampler.is_some() && iteration.len() > 1;
        if self.settings.preemptions.is_some()
            || spread
            || !alone
            || !graph.events()[events..].iter().all(newest)
            || self.is_deferred(thread)
            || !may_drop_iteration(&mut self.machine, graph, thread, since)
        {
            return ControlFlow::Continue(false);
        }
        let reads = graph.events()[events..].iter();
        let reads = reads.filter_map(|event| Some((thread, event.op.location()?, event.source)));
        self.hints.deferred.retain(|&(other, ..)| other != thread);
        self.hints.deferred.extend(reads);
        let steps = iteration.len();
        let at = graph.event(first).op.location();
        self.cursor.forget(events);
        if self.machine.take_back(thread, steps) {
            return ControlFlow::Continue(true);
        }
        if steps == 1 && at.is_some_and(|at| self.machine.can_retry(at)) {
            self.machine.retry(thread);
            return ControlFlow::Continue(true);
        }
        let Level { graph, model, .. } = self.cursor.level();
        match self
            .machine
            .bring_to(graph, |slot| model.happens_before(graph, slot))
        {
            Ok(()) => ControlFlow::Continue(true),
            Err(mismatch) => ControlFlow::Break(Ending::Nondeterministic(mismatch)),
        }
    }

    /// Whether the next iteration of `thread` is known to make it spin as long as there is no newer write.
    pub(super) fn is_deferred(&self, thread: ThreadId) -> bool {
        let reads = self.hints.deferred.iter();
        let mut reads = reads.filter(|&&(other, ..)| other == thread).peekable();
        let newest = |&(_, at, source)| self.graph().newest(at) == source;
        reads.peek().is_some() && reads.all(newest)
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
