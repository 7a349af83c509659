//! Running a closure under every schedule.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use selvedge_core::report::Counts;
use selvedge_page::Origins;
use serde::{Deserialize, Serialize};

use crate::clerk;
use crate::jobs::{self, Here, Part};
pub use crate::options::{Equivalence, MemoryModel, Random, Strategy};
use crate::options::{SpuriousEvents, environment, is_set};
pub use crate::report::Failure;
use crate::rt::{Limits, RustMachine};
use crate::search::Explored;
use crate::watch::{Progress, Watch};
use crate::{advice, calls, estimate, page};

/// How many bytes the stack of a thread has unless something else is asked for.
pub(crate) const STACK_SIZE: usize = 2 << 20;

/// The message if memory was freed that was not protected.
const UNPROTECTED: &str = "selvedge unprotected: after the first 256 executions, or in blocks beyond the first 32 MB, a \
                           read of freed memory through a raw pointer would not have been noticed \
                           (SELVEDGE_PROTECT_MEMORY=1 protects all of it)";

/// Configures a model, as loom's builder does, and runs it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Builder {
    /// Max number of threads; there is no limit unless one is set.
    pub max_threads: usize,
    /// Max number of operations of one thread. A model that goes beyond fails.
    pub max_branches: usize,
    /// How many bytes the stack of each thread has.
    pub stack_size: usize,
    /// Max number of executions to explore. The rest is left out.
    pub max_permutations: Option<usize>,
    /// Max time to explore. The rest is left out.
    pub max_duration: Option<Duration>,
    /// Only executions with at most this many preemptions are wanted.
    pub preemption_bound: Option<usize>,
    /// The file that the search is saved in every two seconds, and when a limit stops it. If the file
    /// is there, the search goes on where it was. It is removed when the search is done.
    pub checkpoint_file: Option<PathBuf>,
    /// Without meaning here: the file is written every two seconds.
    pub checkpoint_interval: usize,
    /// How many processes explore the model, once it takes long enough to benefit from several. The
    /// program is started again for the test that runs, so a model with more than one is refused outside
    /// of tests.
    pub jobs: usize,
    /// Without meaning here.
    pub expect_explicit_explore: bool,
    /// Without meaning here: places are always known.
    pub location: bool,
    /// Whether to tell on standard error how many executions there were.
    pub log: bool,
    /// The rules for allowed outcomes.
    pub model: MemoryModel,
    /// The equivalence by which executions count as the same.
    pub equivalence: Equivalence,
    /// Whether to try some executions at random instead of exploring all.
    pub random: Option<Random>,
    /// Whether a wait on a [`Condvar`](crate::sync::Condvar), or a [`park`](crate::thread::park),
    /// may end without a reason. That this happens once in each thread is explored.
    pub spurious_wakeups: bool,
    /// Whether a `compare_exchange_weak` may fail although it finds what it expects. That this
    /// happens once in each thread is explored.
    pub spurious_failures: bool,
    /// How many timed waits of a thread may time out, each of them as soon as it begins or at any
    /// later point. If a thread has no time-out left and nothing else ends its wait, the execution
    /// is left out, which [`Verdict::Stopped`] tells.
    pub max_timeouts: usize,
    /// Whether a thread that allocates memory is given the block of that size which it freed last,
    /// as allocators do. Otherwise no address is used twice in an execution, and what needs that
    /// (the ABA problem) is not found.
    pub reuse_memory: bool,
    /// Whether freed memory is protected in all executions, and not only in the first 256, so that a read of it
    /// through a raw pointer is always noticed. That costs some microseconds for each block that is freed.
    pub protect_memory: bool,
    /// Whether an [`Arc`](crate::sync::Arc) that is never dropped is a failure.
    pub check_leaks: bool,
    /// Whether [`check`](Builder::check) passes although a limit left executions out.
    pub allow_incomplete: bool,
}

/// The result of an exploration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// The result.
    pub verdict: Verdict,
    /// Complete executions.
    pub executions: u64,
    /// Executions that ended blocked and count for nothing.
    pub blocked: u64,
    /// Only executions with at most this many preemptions were asked for.
    pub bound: Option<u32>,
    /// Whether executions freed memory that was not protected. A read of it through a raw pointer would not have been
    /// noticed (see [`protect_memory`](Builder::protect_memory)).
    pub unprotected: bool,
}

/// The result of an exploration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    /// No execution fails.
    Verified,
    /// An execution fails.
    Failed(Box<Failure>),
    /// No execution fails so far, but some are left out: a limit ended the exploration, or a thread
    /// timed out as often as it may.
    Stopped,
    /// Something stands in the way of exploring all executions.
    Incomplete(String),
}

impl Builder {
    /// The defaults, changed by the environment: `SELVEDGE_MODEL` (`sc`, `tso`, `ra`, `rc11`),
    /// `SELVEDGE_EQUIVALENCE` (`mazurkiewicz`, `reads-from`), `SELVEDGE_MAX_PREEMPTIONS`,
    /// `SELVEDGE_MAX_BRANCHES`, `SELVEDGE_STACK_SIZE`, `SELVEDGE_MAX_EXECUTIONS`,
    /// `SELVEDGE_MAX_DURATION` (in seconds), `SELVEDGE_RANDOM` (`walk`, `pct`, `pos`) with
    /// `SELVEDGE_SEED` and `SELVEDGE_RUNS`, `SELVEDGE_SPURIOUS_WAKEUPS`,
    /// `SELVEDGE_SPURIOUS_FAILURES`, `SELVEDGE_MAX_TIMEOUTS`, `SELVEDGE_REUSE_MEMORY`,
    /// `SELVEDGE_PROTECT_MEMORY`, `SELVEDGE_ALLOW_INCOMPLETE`, `SELVEDGE_JOBS`, `SELVEDGE_CHECKPOINT`, `SELVEDGE_LOG` and
    /// `SELVEDGE_PROGRESS`. loom's names are understood as well: `LOOM_MAX_PREEMPTIONS`,
    /// `LOOM_MAX_PERMUTATIONS`, `LOOM_MAX_DURATION`, `LOOM_CHECKPOINT_FILE`.
    ///
    /// # Panics
    ///
    /// If one of them is not understood.
    pub fn new() -> Builder {
        let seconds = environment(&["SELVEDGE_MAX_DURATION", "LOOM_MAX_DURATION"]);
        Builder {
            max_threads: usize::MAX,
            // loom counts otherwise, so that its limit would often be too low.
            max_branches: environment(&["SELVEDGE_MAX_BRANCHES"]).unwrap_or(10_000),
            stack_size: environment(&["SELVEDGE_STACK_SIZE"]).unwrap_or(STACK_SIZE),
            max_permutations: environment(&["SELVEDGE_MAX_EXECUTIONS", "LOOM_MAX_PERMUTATIONS"]),
            max_duration: seconds.map(Duration::from_secs),
            preemption_bound: environment(&["SELVEDGE_MAX_PREEMPTIONS", "LOOM_MAX_PREEMPTIONS"]),
            checkpoint_file: environment(&["SELVEDGE_CHECKPOINT", "LOOM_CHECKPOINT_FILE"]),
            checkpoint_interval: 20_000,
            jobs: environment(&["SELVEDGE_JOBS"]).unwrap_or(1),
            expect_explicit_explore: false,
            location: false,
            log: is_set("SELVEDGE_LOG"),
            model: environment(&["SELVEDGE_MODEL"]).unwrap_or_default(),
            equivalence: environment(&["SELVEDGE_EQUIVALENCE"]).unwrap_or_default(),
            random: environment(&["SELVEDGE_RANDOM"]).map(|strategy| Random {
                strategy,
                seed: environment(&["SELVEDGE_SEED"]).unwrap_or(0),
                runs: environment(&["SELVEDGE_RUNS"]).unwrap_or(1_000),
            }),
            spurious_wakeups: is_set("SELVEDGE_SPURIOUS_WAKEUPS"),
            spurious_failures: is_set("SELVEDGE_SPURIOUS_FAILURES"),
            max_timeouts: environment(&["SELVEDGE_MAX_TIMEOUTS"]).unwrap_or(1),
            reuse_memory: is_set("SELVEDGE_REUSE_MEMORY"),
            protect_memory: is_set("SELVEDGE_PROTECT_MEMORY"),
            check_leaks: true,
            allow_incomplete: is_set("SELVEDGE_ALLOW_INCOMPLETE"),
        }
    }

    /// Saves the search in this file, and continues the one that is saved there (see the field of that
    /// name).
    pub fn checkpoint_file(&mut self, file: &str) -> &mut Self {
        self.checkpoint_file = Some(file.into());
        self
    }

    /// Has this many processes explore the model (see the field of that name).
    pub fn jobs(&mut self, jobs: usize) -> &mut Self {
        self.jobs = jobs;
        self
    }

    /// Runs `f` under every schedule.
    ///
    /// # Panics
    ///
    /// If an execution fails, with a message that tells how; or if a limit left executions out,
    /// unless that is [allowed](Builder::allow_incomplete). A random search leaves out some anyway.
    ///
    /// With `SELVEDGE_REPLAY` set to a schedule that a failure printed, only that execution is run
    /// (see [`replay`](crate::replay)).
    #[track_caller]
    pub fn check<F>(&self, f: F)
    where
        F: Fn() + Sync + Send + 'static,
    {
        if let Some(schedule) = environment::<String>(&["SELVEDGE_REPLAY"]) {
            return crate::replay(&schedule, f);
        }
        match self.explore(f).verdict {
            Verdict::Verified => {}
            Verdict::Stopped if self.allow_incomplete || self.random.is_some() => {}
            Verdict::Stopped => match self.checkpoint_file.as_ref().filter(|file| file.exists()) {
                None => panic!(
                    "this model was not explored completely: a limit left executions out (max_permutations, \
                     max_duration or max_timeouts; allow_incomplete or SELVEDGE_ALLOW_INCOMPLETE=1 lets the test \
                     pass all the same)"
                ),
                Some(file) => panic!(
                    "this model was not explored completely: a limit left executions out; the next run of the test \
                     goes on from {}",
                    file.display()
                ),
            },
            Verdict::Failed(failure) => panic!("{failure}"),
            Verdict::Incomplete(why) => panic!("the model could not be explored: {why}"),
        }
    }

    /// Runs `f` under every schedule and tells what was found.
    #[track_caller]
    pub fn explore<F>(&self, f: F) -> Report
    where
        F: Fn() + Sync + Send + 'static,
    {
        if self.equivalence == Equivalence::ReadsFrom {
            let models = [MemoryModel::Sc, MemoryModel::Ra];
            assert!(
                models.contains(&self.model) && self.preemption_bound.is_none(),
                "the reads-from equivalence is available under the models sc and ra, without a bound"
            );
        }
        clerk::prepare();
        let here = Here::begin();
        let part = here.part();
        if let Part::Known(report) = part {
            return report;
        }
        let file = page::wanted();
        let model: Arc<dyn Fn()> = Arc::new(f);
        let Some(mut machine) = RustMachine::new(Arc::clone(&model), self.limits()) else {
            panic!("a model cannot be run inside of a model");
        };
        if let Part::Serve(socket) = part {
            jobs::serve(self.units(), &mut machine, socket);
        }
        let mut watch = Watch {
            executions: self.max_permutations,
            until: self.max_duration.map(|duration| Instant::now() + duration),
            model: self.random.map_or(self.model, |_| MemoryModel::Sc),
            failure: None,
            bug: None,
            origins: Origins::default(),
            progress: Progress::new(is_set("SELVEDGE_PROGRESS"), file.is_some()),
        };
        if file.is_some() {
            machine.note_sites();
        }
        let Explored {
            counts,
            verdict,
            mut bug,
            stopped,
            origins,
            unprotected,
        } = self.run(&mut machine, &mut watch, &here);
        watch.progress.sample(&counts);
        let time = watch.progress.elapsed();
        let divides = self.random.is_none() && self.equivalence == Equivalence::Mazurkiewicz;
        let estimate = (file.is_some() && stopped && divides && bug.is_none())
            .then(|| estimate::estimate(self, &mut machine, counts.executions, time))
            .flatten();
        if file.is_some()
            && let Some(found) = &watch.bug
        {
            bug = bug.map(|page| page.advice(advice::advise(&mut machine, found, watch.model)));
        }
        drop(machine);
        if file.is_some()
            && let Verdict::Failed(failure) = &verdict
        {
            bug = bug.map(|page| calls::add(page, &failure.replay, model, self.limits()));
        }
        let Counts {
            executions,
            blocked,
            ..
        } = counts;
        if self.log {
            eprintln!("selvedge: {executions} executions, {blocked} blocked: {verdict:?}");
            if unprotected {
                eprintln!("{UNPROTECTED}");
            }
        }
        let report = Report {
            verdict,
            executions,
            blocked,
            bound: self.bound(),
            unprotected,
        };
        if let Some(file) = file {
            let contents = page::Contents {
                builder: self,
                report: &report,
                bug,
                time,
                history: &watch.progress.history,
                origins: &origins.unwrap_or_default(),
                estimate,
            };
            page::write(&file, contents);
        }
        here.end(&report);
        report
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            max_branches: self.max_branches,
            max_threads: Some(self.max_threads),
            stack_size: self.stack_size,
            check_leaks: self.check_leaks,
            protects: self.protect_memory,
            spurious: SpuriousEvents {
                wakeups: self.spurious_wakeups,
                failures: self.spurious_failures,
                timeouts: self.max_timeouts,
                reuse: self.reuse_memory,
            },
            replaying: false,
            calls: false,
        }
    }

    pub(crate) fn bound(&self) -> Option<u32> {
        let bound = self.preemption_bound?;
        Some(u32::try_from(bound).unwrap_or(u32::MAX))
    }
}

impl Default for Builder {
    fn default() -> Self {
        Builder::new()
    }
}

/// Runs `f` under every schedule, with the default configuration.
#[track_caller]
pub fn model<F>(f: F)
where
    F: Fn() + Sync + Send + 'static,
{
    Builder::new().check(f);
}
