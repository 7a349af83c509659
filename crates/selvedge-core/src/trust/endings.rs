//! What becomes of an execution: failures, deadlocks, completion.

use std::ops::ControlFlow;

use super::{Ending, Level, Observer, Search, Waiting, maximal};
use crate::failure::Failure;
use crate::graph::Next;
use crate::ids::ThreadId;
use crate::machine::{Machine, Pending, Stop};
use crate::model::Model;
use crate::op::Op;
use crate::report;

impl<C: Model, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Looks at every thread, see [`check`](Search::check).
    pub(super) fn check_all(&mut self) -> ControlFlow<Ending> {
        let all = 0..self.machine.threads() as u32;
        all.map(ThreadId).try_for_each(|thread| self.check(thread))
    }

    /// Looks whether `thread` ran into something that ends the search.
    pub(super) fn check(&mut self, thread: ThreadId) -> ControlFlow<Ending> {
        let threads = self.machine.threads();
        self.level().graph.reserve_threads(threads);
        match self.machine.pending(thread) {
            Pending::Stopped(Stop::Failed) => {
                let failure = self
                    .machine
                    .failure()
                    .expect("a failed thread has a failure");
                self.failed(failure)
            }
            Pending::Stopped(Stop::Refused) => {
                let what = self.machine.refusal().unwrap_or_default();
                ControlFlow::Break(Ending::Refused(what))
            }
            Pending::Stopped(Stop::Finished | Stop::Returned | Stop::Exited) => {
                self.level().graph.note_next(thread, Next::Nothing);
                ControlFlow::Continue(())
            }
            Pending::Stopped(Stop::Unrolled) => {
                self.unrolled = true;
                ControlFlow::Continue(())
            }
            Pending::Stopped(Stop::Spinning { since }) => {
                let level = &mut self.levels[self.depth];
                // What an iteration touches besides the location it waits for may yet be freed, or
                // be written by an access that it races with, by a thread that has not come to that.
                let machine = &mut *self.machine;
                if machine.quiet(thread)
                    && (maximal::waits_for_one(&level.graph, thread, since)
                        || maximal::locations(&level.graph, thread, since)
                            .all(|location| machine.never_races(location)))
                {
                    if let Some(value) = level.note_futile(thread, since) {
                        self.spins.note(machine.site(thread), value);
                    }
                    let Level { graph, stable, .. } = level;
                    graph.park_if_alone(thread, since, maximal::tries_again);
                    self.hopeless |= maximal::spins_for_good(graph, thread, since, stable);
                }
                ControlFlow::Continue(())
            }
            Pending::Op(Op::Join { child }) => {
                self.level().graph.note_next(thread, Next::Join(child));
                ControlFlow::Continue(())
            }
            Pending::Op(Op::JoinAll) => {
                self.level().graph.note_next(thread, Next::JoinAll);
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// A thread ran into `failure`. What follows undefined behaviour is not explored, and an execution that
    /// is cut short by it counts as blocked.
    pub(super) fn failed(&mut self, failure: Failure) -> ControlFlow<Ending> {
        let undefined = failure.kind.is_undefined_behaviour();
        let recorded = match self.bug(failure, Vec::new()) {
            ControlFlow::Continue(recorded) => recorded,
            ControlFlow::Break(ending) => {
                self.counts.executions += u64::from(ending == Ending::FirstBug);
                return ControlFlow::Break(ending);
            }
        };
        if undefined {
            self.counts.blocked += u64::from(!self.hopeless);
            self.hopeless = true;
        } else if recorded {
            self.replay()?;
        }
        ControlFlow::Continue(())
    }

    /// Records a bug of the present graph, unless it is known, and replays it to be sure. True if
    /// the machine was moved by that; it stands where the bug is.
    pub(super) fn bug(
        &mut self,
        failure: Failure,
        waiting: Vec<Waiting>,
    ) -> ControlFlow<Ending, bool> {
        if self.bugs.knows(&failure) {
            return ControlFlow::Continue(false);
        }
        let Level { graph, model, .. } = &self.levels[self.depth];
        let search = (&mut *self.machine, &mut *self.observer);
        self.bugs.record(search, (graph, model), failure, waiting)?;
        ControlFlow::Continue(true)
    }

    pub(super) fn finish(&mut self) -> ControlFlow<Ending> {
        match report::classify(self.machine, self.graph()) {
            report::End::Complete => {
                let bound = self.settings.preemptions;
                let level = &mut self.levels[self.depth];
                let checks = &mut self.checks;
                let course = &mut self.course;
                let within = |bound| level.ends_within(bound, course, checks);
                if bound.is_none_or(within) {
                    self.counts.executions += 1;
                    self.observer.complete(&level.graph);
                } else {
                    self.counts.over_bound += 1;
                    self.checks.ended += 1;
                    self.observer.over_bound(&level.graph);
                }
                if let Some(failure) = self.machine.leftover() {
                    self.bug(failure, Vec::new())?;
                }
            }
            report::End::Blocked => self.counts.blocked += 1,
            report::End::Stuck(failure, waiting) => {
                self.counts.blocked += 1;
                let level = &self.levels[self.depth];
                self.observer.stuck(&level.graph);
                self.bug(failure, waiting)?;
            }
        }
        match self.observer.progress(&self.counts) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Ending::Stopped),
        }
    }
}
