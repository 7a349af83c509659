//! The messages between the command and its worker.

use std::path::PathBuf;
use std::time::Duration;

use selvedge_core::Failure;
use selvedge_core::report::{Bug as RawBug, Counts, Ending, StateCounts};
use selvedge_core::witness;
use selvedge_page::Origin;
use selvedge_runtime::Extent;
use serde::{Deserialize, Serialize};

use super::orders::{Order, Sliced};
use crate::args::{self, Model};
use crate::compile::Image;
use crate::explorer::Explorer;
use crate::paths;
use crate::problem::Problem;
use crate::report;
use crate::temporal::Asked;

/// A request to a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    /// The program.
    #[serde(with = "paths")]
    pub(crate) library: PathBuf,
    /// The shared counters.
    #[serde(with = "paths")]
    pub(crate) counters: PathBuf,
    /// How the program behaves.
    pub(crate) machine: args::ProgramOptions,
    /// Whether the program's output is shown.
    pub(crate) show_output: bool,
    /// Whether the program is run as one whose states are kept.
    pub(crate) stateful: bool,
    /// Questions to the program besides its behaviour.
    pub(crate) asked: Asked,
    /// The work.
    pub(crate) task: Task,
}

impl Request {
    /// A request for `task`, of a program whose states are not kept and whose output is not shown.
    pub(crate) fn new(image: &Image, machine: &args::ProgramOptions, task: Task) -> Request {
        Request {
            library: image.library.clone(),
            counters: image.scratch.join("counters"),
            machine: machine.clone(),
            show_output: false,
            stateful: false,
            asked: Asked::default(),
            task,
        }
    }

    /// How many processes work on it.
    pub(crate) fn processes(&self) -> u32 {
        match &self.task {
            Task::Search(search) => search.explorer.jobs(),
            Task::Relax(relax) => relax.jobs,
            _ => 1,
        }
    }
}

/// The work itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// Explore every execution.
    Search(SearchTask),
    /// Explore parts of that: the one given here, else those that are ordered.
    Slices(SearchTask, Option<Box<Order>>),
    /// Tell which shared libraries come with the program.
    Libraries,
    /// Run the schedules of these bugs and see whether they end as they did before.
    Replay(Vec<RawBug>),
    /// See which orders and fences would have forbidden this bug, which was found under this model.
    Advise(Model, Box<RawBug>),
    /// Explore every execution and see what that costs.
    Measure(Explorer),
    /// Estimate how many executions there are.
    Estimate(Sampling),
    /// Prove schedules, and write down what it takes to have no others.
    Relax(Relax),
}

/// How to estimate the number of executions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sampling {
    /// Under which memory model.
    pub(crate) model: Model,
    /// Only those with at most this many preemptions.
    pub(crate) preemptions: Option<u32>,
    /// For how long.
    pub(crate) time: Duration,
}

/// A request for a proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Relax {
    /// The prefix file.
    #[serde(with = "paths")]
    pub(crate) output: PathBuf,
    /// The program.
    pub(crate) fingerprint: [u8; 16],
    /// Whether what the file holds is taken up.
    pub(crate) resume: bool,
    /// The order of the initial trace, if not the best one.
    pub(crate) order: Option<selvedge_core::irs::Order>,
    /// No more executions than that.
    pub(crate) max_executions: Option<u64>,
    /// How many processes there are.
    pub(crate) jobs: u32,
    /// The places of accesses that the program announces in another order than it makes them, relative to its
    /// beginning: a running program cannot compare them with histories.
    pub(crate) untracked: Vec<u32>,
    /// The user's functions, sorted: what C++'s library does by itself, such as system calls, is not compared.
    pub(crate) functions: Vec<String>,
    /// Whether a thread ends when its function returns: nothing is left to be destroyed then.
    pub(crate) ends: bool,
}

/// A search.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SearchTask {
    /// The explorer.
    pub(crate) explorer: Explorer,
    /// Whether it goes on after a bug.
    pub(crate) keep_going: bool,
    /// The executions that it explores.
    pub(crate) bound: Bound,
    /// No more executions than that.
    pub(crate) max_executions: Option<u64>,
    /// Whether it has ended its process before.
    pub(crate) rerun: Rerun,
    /// Whether it tells where executions come from.
    pub(crate) origins: bool,
}

/// Whether a search is repeated to see how it ended its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Rerun {
    /// It is not.
    No,
    /// Every step is told from this run of the program on.
    Run(u64),
    /// Of a search over states: the step with this number ended the process. The steps that lead
    /// there are told.
    Step(u64),
}

/// The executions that are explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Bound {
    /// All of them.
    None,
    /// Executions with at most this many preemptions, or whatever else the explorer counts.
    AtMost(u32),
    /// Executions without preemptions, then those with at most one, and so on until that is all of
    /// them.
    Iterative,
}

/// A message of a worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The process cannot be confined, for this reason.
    Unconfined(String),
    /// The program is loaded; the work begins.
    Loaded,
    /// The program cannot be loaded.
    Unloadable(Unloadable),
    /// The shared libraries that were loaded, each with what tells its versions apart.
    Libraries(Vec<Library>),
    /// A bug was found.
    Bug(Box<FoundBug>),
    /// The program starts from the beginning (only with a journal).
    Begin,
    /// The program is about to take this step (only with a journal).
    Step(Box<(report::Step, witness::Step)>),
    /// An execution has become long; this loop went round most often.
    HotLoop(HotLoop),
    /// The search has ended.
    Searched(Searched),
    /// A part of it has been explored.
    Sliced(Box<Sliced>),
    /// A schedule has been run again.
    Replayed(Replayed),
    /// Changes that would have forbidden a bug.
    Advised(report::Advice),
    /// The costs.
    Measured(Measured),
    /// About how many executions there are.
    Sampled(Box<Sampled>),
    /// The proof so far, as a prefix file.
    Prefix(Vec<u8>),
    /// The result of a proof.
    Relaxed(Box<Relaxed>),
    /// There is nothing more to say.
    Done,
}

/// The name of a shared library, and what tells its versions apart.
pub(crate) type Library = (String, String);

/// A loop, and how often it went round in one execution.
pub(crate) type HotLoop = (report::Place, u32);

/// Why a program cannot be loaded.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Unloadable {
    /// It fails before `main`.
    Fails(Failure),
    /// It does something that is not modelled, or is built in a way that is not.
    Refused(String),
    /// The system is to blame.
    System(String),
}

impl Unloadable {
    /// The failure, if it is one of the program.
    pub(crate) fn failure(self) -> Result<Failure, Problem> {
        match self {
            Unloadable::Fails(failure) => Ok(failure),
            Unloadable::Refused(why) => Err(Problem::request(format!(
                "cannot check this program: {why}"
            ))),
            Unloadable::System(why) => Err(Problem::internal(why)),
        }
    }
}

/// A bug in both forms.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FoundBug {
    /// For people.
    pub(crate) described: report::Bug,
    /// For a replay.
    pub(crate) raw: RawBug,
}

/// How a search ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Searched {
    /// Why.
    pub(crate) ending: Ending,
    /// The counts.
    pub(crate) counts: Counts,
    /// The states it saw, if it is about states.
    pub(crate) states: Option<StateCounts>,
    /// The bound, if anything lies beyond it.
    pub(crate) bound: Option<u32>,
    /// Whether a loop was cut.
    pub(crate) unrolled: bool,
    /// Whether the limit on executions ended it.
    pub(crate) limited: bool,
    /// The loop that went round most often, if that was often: where, and how often.
    pub(crate) hot_loop: Option<HotLoop>,
    /// Whether the program used weak compare-exchanges.
    pub(crate) weak_exchanges: bool,
    /// Whether it compared pointers to memory that another thread frees.
    pub(crate) freed_pointers: bool,
    /// The largest status that it ended with.
    pub(crate) status: i32,
    /// Whether it started threads.
    pub(crate) threads: bool,
    /// Bytes that it accesses with different widths at the same time.
    pub(crate) mixed: Option<Extent>,
    /// The first bug was found in the execution with this number, of all that ended in any way.
    pub(crate) first_bug: Option<u64>,
    /// A bug in an execution beyond the bound.
    pub(crate) beyond: Option<Box<report::Bug>>,
    /// The most memory that the worker had, in bytes.
    pub(crate) memory: u64,
    /// The processor time that each process of a search over states took.
    pub(crate) processor_seconds: Vec<f64>,
    /// Where executions come from, if that was asked for.
    pub(crate) origins: Vec<Origin>,
    /// The lines that no execution reached, if that was asked for and can be told.
    pub(crate) unreached: Option<Vec<report::Place>>,
}

/// The cost of a search, and of the program without it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// Why the search ended.
    pub(crate) ending: Ending,
    /// The counts.
    pub(crate) counts: Counts,
    /// The events of all complete executions.
    pub(crate) events: u64,
    /// The steps that the program took, those that were repeated and given up included.
    pub(crate) steps: u64,
    /// The processor time it took.
    pub(crate) search: Duration,
    /// The events of as many executions of one schedule.
    pub(crate) bare_events: u64,
    /// The processor time these took.
    pub(crate) bare: Duration,
    /// Bytes of memory before the search.
    pub(crate) resident_at_start: u64,
    /// The largest number of them up to its end.
    pub(crate) resident_at_most: u64,
}

/// The result of random descents of a search tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sampled {
    /// Why they ended.
    pub(crate) ending: Ending,
    /// How many there were.
    pub(crate) descents: u64,
    /// The mean of their estimates,
    pub(crate) mean: f64,
    /// and the standard deviation of that.
    pub(crate) deviation: f64,
    /// How many executions a search has in a second.
    pub(crate) rate: f64,
    /// The number of executions, if that search came to its end.
    pub(crate) exact: Option<u64>,
    /// How many distinct bugs were met.
    pub(crate) bugs: u64,
    /// The lines at which most alternatives begin, and their part of all alternatives.
    pub(crate) lines: Vec<(report::Place, f64)>,
}

/// The end of a proof.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Relaxed {
    /// It came to this.
    Proven {
        /// The remaining waits.
        summary: Summary,
        /// Why it ended, if not because there is nothing left to prove.
        ending: Option<Ending>,
        /// Whether the limit on executions ended it.
        limited: bool,
    },
    /// There is nothing to enforce, because of this.
    Impossible(String),
    /// The file holds part of a proof that cannot be taken up.
    Changed,
    /// The worker's own data is not what it was.
    Modified,
}

/// The demands of a prefix file.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// Waits of the first file.
    pub(crate) initial: u64,
    /// Traces proven.
    pub(crate) traces: u64,
    /// A guess of how many there are.
    pub(crate) estimate: u64,
    /// How many inputs the program has.
    pub(crate) inputs: u64,
    /// The remaining waits.
    pub(crate) constraints: Vec<Constraint>,
}

/// An event that waits for another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Constraint {
    /// For which input.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub(crate) input: Vec<u32>,
    /// The waiting thread.
    pub(crate) thread: u32,
    /// Before which of its counted events.
    pub(crate) event: u32,
    /// Where that is.
    pub(crate) place: report::Place,
    /// The thread that it waits for.
    pub(crate) source: u32,
    /// For how many of its counted events.
    pub(crate) count: u32,
    /// Where the last of them is.
    pub(crate) source_place: report::Place,
    /// The bug it keeps away, as an index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) bug: Option<usize>,
}

/// How a replay ended.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Replayed {
    /// In a failure, as it is now.
    Failed(Box<FoundBug>),
    /// The program did something else than the schedule says.
    Diverged(String),
    /// The schedule was followed to its end and nothing failed.
    Passed,
}
