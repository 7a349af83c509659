//! Which thread a graph is extended by, and whether it is worth extending.

use super::{Observer, Search};
use crate::graph::Kind;
use crate::ids::ThreadId;
use crate::machine::{Machine, Pending, may_join};
use crate::model::Model;
use crate::objects::ObjectFunction;
use crate::op::{Function, Op};

impl<C: Model, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Whether the graph can lead to executions within the bound. If there is one, its course is known afterwards.
    pub(super) fn within_bound(&mut self) -> bool {
        let Some(bound) = self.settings.preemptions else {
            return true;
        };
        let level = &mut self.levels[self.depth];
        let within = self.course.find(level, bound)
            || level.may_stay_within(bound, &self.course, &mut self.checks);
        if !within {
            self.counts.bound_blocked += 1;
        }
        within
    }

    /// The same for a graph that goes on with `thread`. It is not looked at again before it has grown somewhat: the replay has been paid for.
    pub(super) fn may_extend(&mut self, thread: ThreadId) -> bool {
        let Some(bound) = self.settings.preemptions else {
            return true;
        };
        let (events, last) = self.checked;
        self.checked.1 = Some(thread);
        let graph = self.graph();
        let few = graph.len() < events + events / 8 + 4;
        // As long as one thread goes on, or a new one begins, nothing is left and no preemption added.
        if few || last == Some(thread) || graph.thread(thread).is_empty() {
            return true;
        }
        self.checked.0 = graph.len();
        self.course.is_within(bound) || self.within_bound()
    }

    /// The thread to extend: the one that was extended last if it can go on, since that wastes
    /// least, else the left-most; the left-most in any case once something lies beyond the bound, since that needs
    /// the least slack; one that wants a held mutex only if there is no other.
    pub(super) fn next(&mut self) -> Option<(ThreadId, Op)> {
        if self.checks.cuts() {
            return self.first_runnable(None);
        }
        let last = self.graph().events().last().map(|event| event.id.thread);
        self.first_runnable(last)
    }

    /// The first thread that can go on, with `favourite` before the others.
    fn first_runnable(&self, favourite: Option<ThreadId>) -> Option<(ThreadId, Op)> {
        let all = (0..self.machine.threads() as u32).map(ThreadId);
        let mut deferred = None;
        for thread in favourite.into_iter().chain(all) {
            let Some(op) = self.runnable(thread) else {
                continue;
            };
            if !self.wants_held_mutex(op) {
                return Some((thread, op));
            }
            deferred = deferred.or(Some((thread, op)));
        }
        deferred
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
            _ => may_join(self.machine, thread, op),
        };
        enabled.then_some(op)
    }

    pub(super) fn wants_held_mutex(&self, op: Op) -> bool {
        let Op::Update { at, function, .. } = op else {
            return false;
        };
        let Function::Object(ObjectFunction::MutexLock { .. }) = function else {
            return false;
        };
        match self.graph().coherence(at).last() {
            Some(&newest) => self.graph().event(newest).kind == Kind::WriteHalf,
            None => false,
        }
    }
}
