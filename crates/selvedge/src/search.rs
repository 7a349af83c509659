//! How a [`Builder`] searches: in one go, by several processes, or with a checkpoint.

use selvedge_core::report::{Counts, Divergence, Ending, Report as Found};
use selvedge_core::tracer::{self, SaturatedRa, SaturatedSc};
use selvedge_core::trust::{self, Settings};
use selvedge_core::{dpor, with_model};
use selvedge_page::BugPage;

use crate::checkpoint::Checkpoint;
use crate::jobs::{self, Here, Searched};
use crate::model::{Builder, Equivalence, MemoryModel, Random, Strategy, Verdict};
use crate::rt::RustMachine;
use crate::watch::Watch;

impl Builder {
    /// Searches, and starts over whenever something was learned about the program.
    pub(crate) fn run(
        &self,
        machine: &mut RustMachine,
        watch: &mut Watch,
        here: &Here,
    ) -> (Counts, Verdict, Option<BugPage>) {
        let (searched, differs) = loop {
            let searched = match self.explore_by(machine, watch, here) {
                Ok(searched) => searched,
                Err(why) => return (Counts::default(), Verdict::Incomplete(why), None),
            };
            let differs = match &searched.ending {
                Ending::Nondeterministic(_) => searched.differs.clone(),
                Ending::Refused(_) => None,
                _ if searched.failure.is_some() => None,
                _ => machine.differs(),
            };
            // Running the first execution again can teach something, too.
            if !machine.starts_over() {
                break (searched, differs);
            }
            machine.forget_first();
        };
        let (failure, bug) = searched.failure.unzip();
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
        (searched.counts, verdict, bug)
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
                "{what} goes with the equivalence mazurkiewicz only, and not with random executions"
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
            (Equivalence::ReadsFrom, MemoryModel::Ra) => {
                tracer::search::<SaturatedRa, _>(machine, false, watch)
            }
            (Equivalence::ReadsFrom, _) => tracer::search::<SaturatedSc, _>(machine, false, watch),
        }
    }
}
