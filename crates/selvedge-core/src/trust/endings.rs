//! The ends of executions: failures, deadlocks, completion.

use std::ops::ControlFlow;

use super::{Ending, Level, Observer, Search, Waiting, maximal};
use crate::failure::Failure;
use crate::graph::{Kind, Next};
use crate::ids::ThreadId;
use crate::machine::{Pending, SpinLoops, Stop};
use crate::model::Model;
use crate::op::Op;
use crate::report;
use crate::spins::{may_drop_iteration, takes_locks};

impl<C: Model, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
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
            Pending::Stopped(stop @ (Stop::Failed | Stop::Refused | Stop::Unrolled)) => {
                match report::halted(&*self.machine, stop, &mut self.unrolled)? {
                    Some(failure) => self.failed(failure),
                    None => ControlFlow::Continue(()),
                }
            }
            Pending::Stopped(Stop::Finished | Stop::Returned | Stop::Exited) => {
                self.level().graph.note_next(thread, Next::Nothing);
                ControlFlow::Continue(())
            }
            // With a bound, a failure of another thread may be within it only in such an execution.
            Pending::Stopped(Stop::Assumed) if self.settings.preemptions.is_none() => {
                let Level { graph, stable, .. } = self.cursor.level();
                if !self.hopeless && maximal::blocked_for_good(graph, thread, stable) {
                    self.counts.blocked += 1;
                    self.hopeless = true;
                }
                ControlFlow::Continue(())
            }
            Pending::Stopped(Stop::Spinning { since })
                if !takes_locks(self.graph(), thread, since) =>
            {
                let level = self.cursor.level_mut();
                let machine = &mut self.machine;
                if may_drop_iteration(machine, &level.graph, thread, since) {
                    if let Some(value) = level.note_futile(thread, since) {
                        self.hints.spins.note(machine.site(thread), value);
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
    ///
    /// With a bound, a failure is reported at the end of its execution: only then it is known whether the execution is
    /// within the bound.
    pub(super) fn failed(&mut self, failure: Failure) -> ControlFlow<Ending> {
        let undefined = failure.kind.is_undefined_behaviour();
        if self.settings.preemptions.is_some() {
            let known = |(known, _): &(Failure, _)| report::same_bug(known, &failure);
            if !self.failures.iter().any(known) {
                self.failures.push((failure, Vec::new()));
            }
            if undefined && !self.hopeless {
                self.hopeless = true;
                let within = self.is_within_bound(false);
                self.count_unless_complete(within);
                return self.report_failures(within);
            }
            return ControlFlow::Continue(());
        }
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
    fn bug(&mut self, failure: Failure, waiting: Vec<Waiting>) -> ControlFlow<Ending, bool> {
        if self.bugs.knows(&failure) {
            return ControlFlow::Continue(false);
        }
        let Level { graph, model, .. } = self.cursor.level();
        let search = (self.machine.lend(), &mut *self.observer);
        self.bugs.record(search, (graph, model), failure, waiting)?;
        ControlFlow::Continue(true)
    }

    /// Whether the present graph has no more preemptions than wanted. `ended` tells whether the execution has ended.
    fn is_within_bound(&mut self, ended: bool) -> bool {
        let Some(bound) = self.settings.preemptions else {
            return true;
        };
        let level = self.cursor.level();
        let graph = &level.graph;
        let mut threads = (0..graph.threads() as u32).map(ThreadId);
        let parked = threads.any(|thread| {
            let last = graph.thread(thread).last();
            last.is_some_and(|&last| graph.event(last).kind == Kind::Parked)
        });
        if !self.hints.schedule.is_known() {
            self.hints.schedule.find(level, bound);
        }
        // The schedule leaves parked reads out.
        (!(parked && ended) && self.hints.schedule.is_within(bound))
            || level.is_within(bound, ended, &mut self.hints.scratch)
    }

    /// Counts an execution that is not complete.
    fn count_unless_complete(&mut self, within: bool) {
        match within {
            true => self.counts.blocked += 1,
            false => self.counts.over_bound += 1,
        }
    }

    /// Reports the failures of the present execution: as bugs if it is within the bound. Otherwise the observer is only
    /// told of them.
    fn report_failures(&mut self, within: bool) -> ControlFlow<Ending> {
        for (failure, waiting) in std::mem::take(&mut self.failures) {
            if within {
                self.bug(failure, waiting)?;
            } else {
                let Level { graph, model, .. } = self.cursor.level();
                let search = (self.machine.lend(), &mut *self.observer);
                let bugs = &mut self.bugs;
                bugs.note_beyond(search, (graph, model), failure, waiting)?;
            }
        }
        ControlFlow::Continue(())
    }

    pub(super) fn finish(&mut self) -> ControlFlow<Ending> {
        let end = report::classify(&*self.machine, self.graph());
        if let report::End::Unseen(what) = end {
            return ControlFlow::Break(Ending::Refused(what));
        }
        let within = match end {
            report::End::Blocked if self.failures.is_empty() => true,
            report::End::Stale => {
                // With a bound, a failure is reported with an execution that reads newer values.
                self.failures.clear();
                true
            }
            _ => self.is_within_bound(true),
        };
        let graph = self.cursor.graph();
        match end {
            report::End::Complete => {
                if within {
                    self.counts.executions += 1;
                    self.observer.complete(graph);
                } else {
                    self.counts.over_bound += 1;
                    self.observer.over_bound(graph);
                }
                if let Some(failure) = self.machine.leftover() {
                    self.failures.push((failure, Vec::new()));
                }
            }
            report::End::Blocked | report::End::Stale | report::End::Unseen(_) => {
                self.counts.blocked += 1;
            }
            report::End::Stuck(failure, waiting) => {
                if within {
                    self.observer.stuck(graph);
                }
                self.count_unless_complete(within);
                self.failures.push((failure, waiting));
            }
        }
        self.report_failures(within)?;
        match self.observer.progress(&self.counts) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Ending::Stopped),
        }
    }
}
