//! Known-broken variants of the bounded algorithms, for tests and documentation that show what goes wrong.

use super::bpor::Bpor;
use super::lazy_bpor::{Count, LazyBpor};
use super::nidhugg_bpor::{NidhuggBpor, Sleep};
use super::{Statistics, run, source_bpor};
use crate::machine::Machine;
use crate::report::{Ending, Observer, Report};
use crate::settings::Settings;

/// Forms of the bounded algorithms that lose executions, each for one reason. Kept because people
/// know the printed algorithms: the tests and the documentation show with them what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Specimen {
    /// Nidhugg-BPOR whose conservative branches begin with an empty sleep set.
    ConservativeBranchesWakeAll,
    /// Nidhugg-BPOR in which only threads that end with the step go to sleep.
    OnlyEndedThreadsSleep,
    /// Source-BPOR without any sleep sets.
    SourceBporWithoutSleep,
    /// Nidhugg-BPOR without any sleep sets.
    NidhuggBporWithoutSleep,
    /// BPOR that does not care what ends a wait. The other forms of BPOR below do not either.
    BporHeedlessOfWaiting,
    /// BPOR that heeds only steps which do not happen before the next one.
    BporRacesOnly,
    /// BPOR without conservative branches.
    BporWithoutConservative,
    /// BPOR that begins with the oldest thread in place of the running one.
    BporOldestFirst,
    /// Lazy-BPOR that prunes whatever exceeds the bound. The other forms of it below do so too.
    LazyWithoutSlack,
    /// Lazy-BPOR as printed: only the races of threads that are explored. Oldest thread first.
    LazyOldestFirst,
    /// The same with the running thread first.
    LazyRunningFirst,
    /// The first approximation with joins and locks counted.
    FirstApproximationOfAll,
    /// The second approximation with joins and locks counted.
    SecondApproximationOfAll,
}

/// Explores `machine` with a variant of an algorithm that is known to lose executions.
pub fn search_specimen<M: Machine>(
    machine: &mut M,
    specimen: Specimen,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> (Report, Statistics) {
    let bound = settings.preemptions.unwrap_or(0);
    let sleeping = |sleep, algorithm| NidhuggBpor { sleep, ..algorithm };
    let nidhugg = || NidhuggBpor::new(bound);
    let bpor = with(Bpor::new(bound), |it| it.heeds_waiting = false);
    let lazy = |count| LazyBpor::new(bound, count).without_slack();
    macro_rules! run {
        ($algorithm:expr) => {
            run(machine, $algorithm, settings, observer)
        };
    }
    let (mut report, statistics) = match specimen {
        Specimen::ConservativeBranchesWakeAll => {
            run!(sleeping(Sleep::WokenByConservative, nidhugg()))
        }
        Specimen::OnlyEndedThreadsSleep => run!(sleeping(Sleep::OnlyEnded, nidhugg())),
        Specimen::NidhuggBporWithoutSleep => run!(sleeping(Sleep::Never, nidhugg())),
        Specimen::SourceBporWithoutSleep => {
            run!(sleeping(Sleep::Never, source_bpor::source_bpor(bound)))
        }
        Specimen::BporHeedlessOfWaiting => run!(bpor),
        Specimen::BporRacesOnly => run!(with(bpor, |it| it.races_only = true)),
        Specimen::BporWithoutConservative => run!(with(bpor, |it| it.conservative = false)),
        Specimen::BporOldestFirst => run!(with(bpor, |it| it.oldest_first = true)),
        Specimen::LazyWithoutSlack => run!(lazy(Count::Least)),
        Specimen::LazyOldestFirst => run!(with(lazy(Count::Least), |it| {
            it.races_of_all = false;
            it.running_first = false;
        })),
        Specimen::LazyRunningFirst => run!(with(lazy(Count::Least), |it| it.races_of_all = false)),
        Specimen::FirstApproximationOfAll => {
            run!(with(lazy(Count::First), |it| it.count_all = true))
        }
        Specimen::SecondApproximationOfAll => {
            run!(with(lazy(Count::Second), |it| it.count_all = true))
        }
    };
    if report.ending == Ending::Complete {
        report.ending = Ending::Lossy;
    }
    (report, statistics)
}

/// `algorithm` with a rule broken.
fn with<A>(mut algorithm: A, break_rule: impl FnOnce(&mut A)) -> A {
    break_rule(&mut algorithm);
    algorithm
}
