//! Picks the thread that extends the graph, and decides whether the bound prunes it.

use super::{Observer, Search};
use crate::graph::{INIT, Kind};
use crate::ids::{Location, ThreadId};
use crate::machine::{Pending, SpinLoops, may_join};
use crate::model::Model;
use crate::op::{Effect, Op, Value};

impl<C: Model, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Whether the graph can lead to executions within the bound. If there is a bound, a schedule is found.
    pub(super) fn within_bound(&mut self) -> bool {
        let Some(bound) = self.settings.preemptions else {
            return true;
        };
        let level = self.cursor.level();
        // Whichever is asked first, a graph within the bound may lead to executions within it.
        match self.hints.schedule.was_within() {
            true => {
                self.hints.schedule.find(level, bound);
                self.hints.schedule.is_within(bound) || self.may_lead_within()
            }
            false => {
                let within = self.may_lead_within();
                if within {
                    self.hints.schedule.find(self.cursor.level(), bound);
                }
                within
            }
        }
    }

    /// The same without a schedule. Counts the graph if it is pruned.
    pub(super) fn may_lead_within(&mut self) -> bool {
        let level = self.cursor.level();
        let within = self
            .settings
            .preemptions
            .is_none_or(|bound| level.may_lead_within(bound, &mut self.hints.scratch));
        self.counts.bound_blocked += u64::from(!within);
        within
    }

    /// Whether the graph may be extended by `thread`. As long as one thread goes on, or a new one begins, no
    /// thread is left.
    pub(super) fn may_extend(&mut self, thread: ThreadId) -> bool {
        let Some(bound) = self.settings.preemptions else {
            return true;
        };
        let level = self.cursor.level();
        let last = level.graph.events().last().map(|event| event.id.thread);
        last == Some(thread)
            || level.graph.thread(thread).is_empty()
            || self.hints.schedule.is_within(bound)
            || self.may_lead_within()
    }

    /// The thread to extend: the one that was extended last if it can go on, else the left-most; one that waits
    /// for something newer only if there is no other.
    ///
    /// Events that are added early are taken back least often on the way from one execution to the next. So
    /// operations without alternatives come first, and loads of the main thread last: it mostly looks at the
    /// results of the others, and a read that is added after the writes is never revisited. With a bound on
    /// preemptions, the thread that was extended last goes on as long as it can.
    pub(super) fn next(&mut self) -> Option<(ThreadId, Op)> {
        let all = (0..self.machine.threads() as u32).map(ThreadId);
        if self.machine.newest_first() {
            return self.first_runnable(all.rev(), false);
        }
        let last = self.graph().events().last().map(|event| event.id.thread);
        let ordered = self.settings.preemptions.is_none();
        self.first_runnable(last.into_iter().chain(all), ordered)
    }

    /// The first of these threads that can go on; if the operations are `ordered`, the first that is about to
    /// perform one without alternatives, and the main thread before a load only if there is no other.
    fn first_runnable(
        &self,
        threads: impl Iterator<Item = ThreadId>,
        ordered: bool,
    ) -> Option<(ThreadId, Op)> {
        let (mut first, mut looking, mut waiting) = (None, None, None);
        for thread in threads {
            let Some(op) = self.runnable(thread) else {
                continue;
            };
            let next = (thread, op);
            if ordered && op.is_silent() {
                return Some(next);
            }
            if first.is_some() {
                continue;
            }
            if self.would_wait(op) || self.is_deferred(thread) {
                waiting.get_or_insert(next);
            } else if !ordered {
                return Some(next);
            } else if thread == ThreadId::MAIN && matches!(op, Op::Load { .. }) {
                looking = Some(next);
            } else {
                first = Some(next);
            }
        }
        first.or(looking).or(waiting)
    }

    pub(super) fn runnable(&self, thread: ThreadId) -> Option<Op> {
        let Pending::Op(op) = self.machine.pending(thread) else {
            return None;
        };
        let graph = self.graph();
        let enabled = match op {
            Op::Update { .. } => match graph.thread(thread).last() {
                Some(&last) => graph.event(last).kind != Kind::Parked,
                None => true,
            },
            _ => may_join(&*self.machine, thread, op),
        };
        enabled.then_some(op)
    }

    /// Whether `op` waits for an object in its newest state.
    fn would_wait(&self, op: Op) -> bool {
        let Op::Update { at, function, .. } = op else {
            return false;
        };
        function.can_block() && function.apply(self.newest_value(at)) == Effect::Block
    }

    fn newest_value(&self, at: Location) -> Value {
        match self.graph().newest(at) {
            INIT => self.machine.initial(at),
            newest => self.graph().event(newest).wrote,
        }
    }
}
