//! How a [`Builder`] searches: in one go, by several processes, or with a checkpoint.

use std::ops::ControlFlow;
use std::time::Instant;

use selvedge_core::report::{Bug, Counts, Divergence, Ending, Observer, Report as Found};
use selvedge_core::tracer;
use selvedge_core::trust::{self, Settings};
use selvedge_core::{dpor, with_model};
use selvedge_page::{BugPage, Origin, Origins};

use crate::checkpoint::Checkpoint;
use crate::jobs::{self, Here, Searched};
use crate::model::{Builder, Equivalence, Failure, MemoryModel, Random, Strategy, Verdict};
use crate::report;
use crate::rt::{PROTECTED_RUNS, RustMachine};
use crate::watch::Watch;

/// Ends a search that runs some executions again.
struct Again {
    until: Option<Instant>,
    model: MemoryModel,
    failure: Option<(Failure, BugPage)>,
}

impl Observer<RustMachine> for Again {
    fn bug(&mut self, bug: &Bug, machine: &RustMachine) {
        self.failure = Some(report::describe(machine, bug, self.model));
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        let enough = counts.executions + counts.blocked >= PROTECTED_RUNS.into();
        match enough || self.until.is_some_and(|until| Instant::now() >= until) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The result of a search, started over as often as necessary.
pub(crate) struct Explored {
    pub(crate) counts: Counts,
    pub(crate) verdict: Verdict,
    pub(crate) bug: Option<BugPage>,
    /// Whether a limit ended it.
    pub(crate) stopped: bool,
    /// Where executions come from, if that is known.
    pub(crate) origins: Option<Vec<Origin>>,
    /// Whether memory was freed that was not protected.
    pub(crate) unprotected: bool,
}

impl Explored {
    /// Nothing was explored, for this reason.
    fn nothing(why: String) -> Explored {
        Explored {
            counts: Counts::default(),
            verdict: Verdict::Incomplete(why),
            bug: None,
            stopped: false,
            origins: None,
            unprotected: false,
        }
    }
}

impl Builder {
    /// Searches, and starts over whenever something was learned about the program.
    pub(crate) fn run(
        &self,
        machine: &mut RustMachine,
        watch: &mut Watch,
        here: &Here,
    ) -> Explored {
        let (searched, differs) = loop {
            let mut searched = match self.explore_by(machine, watch, here) {
                Ok(searched) => searched,
                Err(why) => return Explored::nothing(why),
            };
            let differs = match &searched.ending {
                Ending::Nondeterministic(_) => searched.differs.clone(),
                Ending::Refused(_) => None,
                _ if searched.failure.is_some() => None,
                _ => machine.differs(),
            };
            if matches!(searched.ending, Ending::Complete)
                && differs.is_none()
                && searched.failure.is_none()
            {
                searched.failure = self.explore_newest_first(machine, watch);
            }
            // Running executions again can teach something, too.
            if !machine.starts_over() {
                break (searched, differs);
            }
            machine.forget_first();
        };
        let (failure, bug) = searched.failure.unzip();
        let stopped = matches!(searched.ending, Ending::Stopped);
        let verdict = match (failure, searched.ending) {
            (Some(failure), _) => Verdict::Failed(Box::new(failure)),
            (None, _) if let Some(what) = differs => Verdict::Incomplete(format!(
                "it did not behave the same when it was run again under the same schedule. Something that is not \
                 part of the model makes a difference: a clock, a random number, the seed of a HashMap, a static \
                 that keeps its value, an address that is kept in an integer, or state that the closure captured. \
                 ({what})"
            )),
            (None, Ending::Refused(why)) => Verdict::Incomplete(why),
            (None, Ending::Internal(why)) => {
                Verdict::Incomplete(format!("this is a defect of Selvedge: {why}"))
            }
            (None, Ending::Stopped | Ending::Sampled(_)) => Verdict::Stopped,
            (None, _) if searched.ran_out_of_time => Verdict::Stopped,
            (None, _) => Verdict::Verified,
        };
        Explored {
            counts: searched.counts,
            verdict,
            bug,
            stopped,
            origins: searched.origins,
            unprotected: searched.unprotected,
        }
    }

    /// Runs some executions again with what threads do between events in another order. Accesses through raw
    /// pointers are no events: one to memory that another thread frees is noticed only where it comes after that.
    fn explore_newest_first(
        &self,
        machine: &mut RustMachine,
        watch: &Watch,
    ) -> Option<(Failure, BugPage)> {
        if self.random.is_some() || self.equivalence != Equivalence::Mazurkiewicz {
            return None;
        }
        let mut again = Again {
            until: watch.until,
            model: watch.model,
            failure: None,
        };
        let settings = self.settings();
        machine.run_newest_first(true);
        with_model!(self.model, C => trust::search::<C, _>(machine, settings, &mut again));
        machine.run_newest_first(false);
        again.failure
    }

    /// Searches, by several processes or with a checkpoint if that is asked for. An error tells why that
    /// cannot be done.
    fn explore_by(
        &self,
        machine: &mut RustMachine,
        watch: &mut Watch,
        here: &Here,
    ) -> Result<Searched, String> {
        let jobs = jobs::processes(self.jobs);
        let saved = self.checkpoint_file.as_ref();
        let divides = self.random.is_none() && self.equivalence == Equivalence::Mazurkiewicz;
        let forced = divides && jobs::forced_budget().is_some();
        if jobs == 1 && saved.is_none() && !forced {
            return Ok(self.explore_at_once(machine, watch));
        }
        let what = match saved {
            Some(_) => "checkpoint_file",
            None => "jobs",
        };
        if !divides {
            return Err(format!(
                "{what} needs the equivalence mazurkiewicz, and cannot be combined with random executions"
            ));
        }
        if jobs > 1 && here.test.is_none() {
            return Err(
                "jobs needs the name of the test that is to be started again, and the thread of this model is not \
                 one that the test harness has started and named (SELVEDGE_JOBS=1 explores it in one process)"
                    .to_owned(),
            );
        }
        let saved = saved.map(|file| {
            let model = (here.test.clone(), here.number);
            let settings = format!("{:?} {:?}", self.units(), self.limits());
            Checkpoint::open(file, model, settings)
        });
        jobs::explore(
            self.units(),
            machine,
            watch,
            (here, jobs),
            saved.transpose()?,
        )
    }

    /// Searches in one go.
    fn explore_at_once(&self, machine: &mut RustMachine, watch: &mut Watch) -> Searched {
        loop {
            watch.origins = Origins::new(machine.sites());
            let found = self.search(machine, watch);
            let failure = watch.failure.take();
            if machine.starts_over() {
                machine.forget_first();
                continue;
            }
            let differs = match &found.ending {
                Ending::Nondeterministic(Divergence::Operation { thread, .. }) => {
                    Some(machine.explain(*thread))
                }
                Ending::Nondeterministic(what) => Some(what.to_string()),
                _ => None,
            };
            return Searched {
                counts: found.counts,
                ending: found.ending,
                failure,
                differs,
                ran_out_of_time: machine.ran_out_of_time(),
                unprotected: machine.left_unprotected(),
                origins: report::lines(&watch.origins, machine),
            };
        }
    }

    /// How units of the model are explored.
    pub(crate) fn units(&self) -> jobs::Search {
        jobs::Search {
            model: self.model,
            settings: self.settings(),
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            keep_going: false,
            preemptions: self.bound(),
        }
    }

    fn search(&self, machine: &mut RustMachine, watch: &mut Watch) -> Found {
        let settings = self.settings();
        if let Some(Random {
            strategy,
            seed,
            runs,
        }) = self.random
        {
            let strategy = match strategy {
                Strategy::Walk => dpor::Strategy::Walk,
                Strategy::Pct { depth } => dpor::Strategy::Pct { depth },
                Strategy::Pos => dpor::Strategy::Pos,
            };
            let sample = dpor::Sample {
                strategy,
                seed,
                runs,
            };
            return dpor::sample(machine, sample, false, watch);
        }
        match (self.equivalence, self.model) {
            (Equivalence::Mazurkiewicz, model) => {
                with_model!(model, C => trust::search::<C, _>(machine, settings, watch))
            }
            (Equivalence::ReadsFrom, model) => tracer::search_under(model, machine, false, watch),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc as StdArc;

    use super::*;
    use crate::sync::atomic::{AtomicUsize, Ordering::*};
    use crate::sync::{Arc, Mutex};
    use crate::thread;
    use crate::watch::Progress;

    /// How many executions `test` has.
    fn executions(newest_first: bool, bound: Option<usize>, test: fn()) -> u64 {
        let mut builder = Builder::new();
        builder.preemption_bound = bound;
        let mut machine = RustMachine::new(StdArc::new(test), builder.limits()).unwrap();
        let mut watch = Watch {
            executions: None,
            until: None,
            model: builder.model,
            failure: None,
            bug: None,
            origins: Origins::default(),
            progress: Progress::default(),
        };
        machine.run_newest_first(newest_first);
        builder
            .explore_at_once(&mut machine, &mut watch)
            .counts
            .executions
    }

    #[test]
    fn the_order_of_threads_changes_no_executions() {
        let tests: [fn(); 3] = [
            || {
                let values = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
                for n in 0..3 {
                    let values = Arc::clone(&values);
                    thread::spawn(move || {
                        values[n % 2].store(n, Relaxed);
                        values[1 - n % 2].load(Acquire)
                    });
                }
                values[0].fetch_add(1, AcqRel);
            },
            || {
                let value = Arc::new(Mutex::new(0));
                let spawn = |_| {
                    let value = Arc::clone(&value);
                    thread::spawn(move || *value.lock().unwrap() += 1)
                };
                let threads: Vec<_> = (0..3).map(spawn).collect();
                threads
                    .into_iter()
                    .for_each(|thread| thread.join().unwrap());
            },
            || {
                let turn = Arc::new(AtomicUsize::new(0));
                for n in 1..3 {
                    let turn = Arc::clone(&turn);
                    thread::spawn(move || {
                        while turn.load(Acquire) != n {}
                        turn.store(n + 1, Release);
                    });
                }
                turn.store(1, Release);
            },
        ];
        for test in tests {
            for bound in [None, Some(0), Some(1)] {
                let expected = executions(false, bound, test);
                assert_eq!(executions(true, bound, test), expected, "{bound:?}");
            }
        }
    }
}
