//! Interleaving-based partial order reduction: sequences, vector clocks, backtrack and sleep sets.
//!
//! The algorithms are those of the thesis on bounded partial order reduction in Nidhugg (source sets
//! and Optimal-DPOR: Abdulla et al., POPL 2014; classic: Flanagan and Godefroid, POPL 2005; BPOR:
//! Coons et al., OOPSLA 2013), sequentially consistent only. Each is a small file, in the document's
//! order and names; they share `explore` (nodes, sleep sets, replay), `trace` (the sequence and its
//! happens-before) and `races`.
//!
//! | name | bound | finds every class | each once |
//! |---|---|---|---|
//! | `source-dpor` | none | yes | yes |
//! | `classic-dpor` | none | yes | no |
//! | `nidhugg-dpor` | none | yes | yes |
//! | `optimal-dpor` | none | yes | yes, and never runs into its sleep sets |
//! | `naive-bpor` | preemptions | **no** | yes |
//! | `bpor` | preemptions | yes | no |
//! | `nidhugg-bpor` | preemptions | **no** | no |
//! | `source-bpor` | preemptions | **no** | no |
//! | `lazy-bpor` | preemptions, least of the class | yes | yes |
//! | `lazy-bpor-1` | first approximation of it | **no** | yes |
//! | `lazy-bpor-2` | second approximation of it | yes | yes |
//!
//! Several algorithms lose classes as they were printed. Algorithms that are offered under their names nevertheless end
//! with [`Ending::Lossy`]. Other known-broken variants are in `specimen.rs`, for tests that show what goes wrong.
//!
//! Deviations common to all of them:
//! * The races of a thread that waits count too, where everything is stuck and where everything
//!   that could go on is asleep; otherwise half of the executions of two threads that take two
//!   locks in opposite order are lost, or those after a lock that is never given back.
//! * Whether a compare-exchange (or a step on an object) writes is decided anew where a
//!   reversal puts it.
//! * A step that may wait is exchanged with the latest earlier step before which it need not wait:
//!   a lock with the other lock, not with the unlock in between. All blocking objects are treated so.
//! * Data choices are alternatives of one step and are explored together.
//! * A thread that spins is not resumed: the executions in which it reads something newer are found by
//!   reversing the race with the write.

mod act;
mod bpor;
mod class;
mod classic;
mod cost_bounded;
mod explore;
mod lazy_bpor;
mod naive_bpor;
mod nidhugg;
mod nidhugg_bpor;
mod optimal;
mod races;
mod sample;
mod source;
mod source_bpor;
#[cfg(feature = "specimens")]
mod specimen;
mod threads;
mod trace;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bugs::Bugs;
use crate::ids::ThreadId;
use crate::machine::Machine;
use crate::report::{Counts, Ending, Observer, Report, Sampled};
use crate::rewind::Rewind;
use crate::settings::Settings;
pub use cost_bounded::Measure;
pub use sample::{Sample, Strategy};
#[cfg(feature = "specimens")]
pub use specimen::{Specimen, search_specimen};

use act::Act;
use explore::{Search, State};

/// The interleaving engines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Engine {
    /// Source sets and sleep sets (Algorithm 3).
    SourceDpor,
    /// Persistent sets from clock vectors, no sleep sets (Algorithm 4).
    ClassicDpor,
    /// Persistent sets by the means of Source-DPOR (Algorithm 5).
    NidhuggDpor,
    /// Source sets and wakeup trees.
    OptimalDpor,
    /// Source-DPOR that drops whatever exceeds the bound (Algorithm 6). Loses executions.
    NaiveBpor,
    /// Conservative branches (Algorithm 7, repaired).
    Bpor,
    /// Conservative branches with sleep sets (Algorithm 8, as printed). Loses executions.
    NidhuggBpor,
    /// The same with source sets (Algorithm 9, as printed). Loses executions.
    SourceBpor,
    /// The least number of preemptions of the class counts (Algorithm 22, repaired).
    LazyBpor,
    /// The first approximation of that number (Algorithm 20). Loses executions.
    LazyBpor1,
    /// The second approximation of that number (Algorithm 21, joins and locks left out).
    LazyBpor2,
}

impl Engine {
    /// All of them, in the document's order.
    pub const ALL: [Engine; 11] = [
        Engine::SourceDpor,
        Engine::ClassicDpor,
        Engine::NidhuggDpor,
        Engine::OptimalDpor,
        Engine::NaiveBpor,
        Engine::Bpor,
        Engine::NidhuggBpor,
        Engine::SourceBpor,
        Engine::LazyBpor,
        Engine::LazyBpor1,
        Engine::LazyBpor2,
    ];

    /// The name users know it by.
    pub const fn name(self) -> &'static str {
        match self {
            Engine::SourceDpor => "source-dpor",
            Engine::ClassicDpor => "classic-dpor",
            Engine::NidhuggDpor => "nidhugg-dpor",
            Engine::OptimalDpor => "optimal-dpor",
            Engine::NaiveBpor => "naive-bpor",
            Engine::Bpor => "bpor",
            Engine::NidhuggBpor => "nidhugg-bpor",
            Engine::SourceBpor => "source-bpor",
            Engine::LazyBpor => "lazy-bpor",
            Engine::LazyBpor1 => "lazy-bpor-1",
            Engine::LazyBpor2 => "lazy-bpor-2",
        }
    }

    /// Whether it needs a bound on preemptions; the others take none.
    pub const fn bounded(self) -> bool {
        !matches!(
            self,
            Engine::SourceDpor | Engine::ClassicDpor | Engine::NidhuggDpor | Engine::OptimalDpor
        )
    }

    /// Whether it finds every class, within its bound if it has one.
    pub const fn complete(self) -> bool {
        !matches!(
            self,
            Engine::NaiveBpor | Engine::NidhuggBpor | Engine::SourceBpor | Engine::LazyBpor1
        )
    }

    /// Whether it visits no class twice.
    pub const fn visits_once(self) -> bool {
        !matches!(
            self,
            Engine::ClassicDpor | Engine::Bpor | Engine::NidhuggBpor | Engine::SourceBpor
        )
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Engine {
    type Err = String;

    fn from_str(name: &str) -> Result<Engine, String> {
        let mut all = Engine::ALL.into_iter();
        all.find(|engine| engine.name() == name)
            .ok_or_else(|| format!("there is no interleaving engine named {name}"))
    }
}

/// Counts of an exploration besides executions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Executions given up because every enabled thread was asleep.
    pub sleep_blocked: u64,
    /// Executions given up because every thread that was not asleep exceeded the bound.
    pub rejected_schedulings: u64,
    /// Branches not taken because of the bound.
    pub rejected_branches: u64,
}

/// Explores `machine` with `engine`. The bound in `settings` is taken as zero by a bounded engine if
/// there is none, and ignored by the others.
pub fn search<M: Machine>(
    machine: &mut M,
    engine: Engine,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> (Report, Statistics) {
    let bound = settings.preemptions.unwrap_or(0);
    let settings = Settings {
        preemptions: engine.bounded().then_some(bound),
        ..settings
    };
    let (mut report, statistics) = match engine {
        Engine::SourceDpor => run(machine, source::SourceDpor, settings, observer),
        Engine::ClassicDpor => run(machine, classic::ClassicDpor, settings, observer),
        Engine::NidhuggDpor => run(machine, nidhugg::NidhuggDpor, settings, observer),
        Engine::OptimalDpor => {
            let algorithm = optimal::OptimalDpor::default();
            run(machine, algorithm, settings, observer)
        }
        Engine::NaiveBpor => {
            let algorithm = naive_bpor::NaiveBpor { bound };
            run(machine, algorithm, settings, observer)
        }
        Engine::Bpor => run(machine, bpor::Bpor::new(bound), settings, observer),
        Engine::NidhuggBpor => {
            let algorithm = nidhugg_bpor::NidhuggBpor::new(bound);
            run(machine, algorithm, settings, observer)
        }
        Engine::SourceBpor => {
            let algorithm = source_bpor::source_bpor(bound);
            run(machine, algorithm, settings, observer)
        }
        Engine::LazyBpor => {
            let algorithm = lazy_bpor::LazyBpor::new(bound, lazy_bpor::Count::Least);
            run(machine, algorithm, settings, observer)
        }
        Engine::LazyBpor1 => {
            let algorithm =
                lazy_bpor::LazyBpor::new(bound, lazy_bpor::Count::First).without_slack();
            run(machine, algorithm, settings, observer)
        }
        Engine::LazyBpor2 => {
            let algorithm = lazy_bpor::LazyBpor::new(bound, lazy_bpor::Count::Second);
            run(machine, algorithm, settings, observer)
        }
    };
    if !engine.complete() && report.ending == Ending::Complete {
        report.ending = Ending::Lossy;
    }
    (report, statistics)
}

/// Explores every execution of `machine` that can be had with at most `bound` delays or switches,
/// each once.
pub fn search_within<M: Machine>(
    machine: &mut M,
    measure: Measure,
    bound: u32,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    let settings = Settings {
        keep_going,
        preemptions: None,
    };
    let algorithm = cost_bounded::CostBounded::new(measure, bound);
    run(machine, algorithm, settings, observer).0
}

/// Runs `machine` at random. That ends as [`Ending::Sampled`] at best.
pub fn sample<M: Machine>(
    machine: &mut M,
    sample: Sample,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    let settings = Settings {
        keep_going,
        preemptions: None,
    };
    let algorithm = sample::Sampler::new(sample);
    run(machine, algorithm, settings, observer).0
}

/// The part in which one engine differs from another. The skeleton calls the methods in this order: at each new
/// node [`arrive`](Algorithm::arrive) and, if some thread is enabled, [`begin`](Algorithm::begin); then
/// [`choose`](Algorithm::choose), [`allows`](Algorithm::allows) and
/// [`depart`](Algorithm::depart) for each thread explored, and after it [`sleeps`](Algorithm::sleeps).
trait Algorithm {
    /// A new node was reached: `next(p)` is known for every thread.
    fn arrive(&mut self, state: &mut State);

    /// Puts the first thread to explore into `back`. False if there is none: all are asleep, or the
    /// bound rejects those that are not.
    fn begin(&mut self, state: &mut State) -> bool;

    /// Takes the next thread to explore from the last node, and a certain alternative of it if not
    /// all are wanted.
    fn choose(&mut self, state: &mut State) -> Option<(ThreadId, Option<u32>)> {
        let node = state.here();
        let thread = node.untried()?;
        node.done.insert(thread);
        Some((thread, None))
    }

    /// Whether the bound allows `E.p`.
    fn allows(&mut self, state: &mut State, thread: ThreadId) -> bool {
        let _ = (state, thread);
        true
    }

    /// `thread` is about to be explored.
    fn depart(&mut self, state: &mut State, thread: ThreadId) {
        let _ = (state, thread);
    }

    /// Whether the step that was explored from the last node goes to sleep there.
    fn sleeps(&mut self, state: &mut State, act: &Act) -> bool {
        let _ = (state, act);
        true
    }

    /// Whether the search was cut too short, now that the program turned out to have this many
    /// threads. It is run once more then.
    fn starts_over(&mut self, threads: usize) -> bool {
        let _ = threads;
        false
    }

    /// An execution was completed.
    fn completed(&mut self, state: &mut State) -> Completed {
        let _ = state;
        Completed::Within
    }

    /// The runs that a random search has tried.
    fn sampled(&self) -> Option<Sampled> {
        None
    }
}

/// The count to which a completed execution adds.
enum Completed {
    /// It is one of those wanted.
    Within,
    /// It is beyond the bound.
    Beyond,
    /// It was counted already.
    Again,
}

fn run<M: Machine>(
    machine: &mut M,
    algorithm: impl Algorithm,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> (Report, Statistics) {
    let mut search = Search {
        machine: Rewind::new(machine),
        observer,
        settings,
        algorithm,
        state: State::default(),
        in_step: false,
        counts: Counts::default(),
        bugs: Bugs::new(settings.keep_going),
        unrolled: false,
        undefined: false,
    };
    let ending = loop {
        let ending = search.run().break_value().unwrap_or(Ending::Complete);
        let threads = search.machine.threads();
        if ending != Ending::Complete || !search.algorithm.starts_over(threads) {
            break ending;
        }
        search.state = State::default();
        search.counts = Counts::default();
        search.observer.restart();
    };
    let ending = match (ending, search.algorithm.sampled()) {
        (Ending::Complete, Some(sampled)) => Ending::Sampled(sampled),
        (ending, _) => ending,
    };
    let report = Report {
        ending,
        counts: search.counts,
        bugs: search.bugs.into_found(),
        unrolled: search.unrolled,
        states: None,
    };
    (report, search.state.statistics)
}
