//! Searches that are stopped between executions, split and continued by fresh searches, against
//! searches in one piece.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::ops::ControlFlow;

use selvedge_core::graph::Graph;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::random::Random;
use selvedge_core::trust::{self, Counts, Ending, Observer, Report, Settings, Unit};
use selvedge_testkit::{
    Axioms, Execution, Flavour, Program, ScriptMachine, random_litmus, random_program,
    with_random_orders,
};

use crate::common::number;

/// How many programs of each flavour, for each model.
const PROGRAMS: u64 = 80;
/// Programs with more executions than this are left out.
const LIMIT: u64 = 400;

const FLAVOURS: [Flavour; 6] = [
    Flavour::Memory,
    Flavour::Mutexes,
    Flavour::Deadlocks,
    Flavour::Objects,
    Flavour::Loops,
    Flavour::Waiting,
];

/// What a search, in one piece or in many, comes to.
#[derive(Default, PartialEq, Eq)]
struct Total {
    within: HashSet<Execution>,
    beyond: HashSet<Execution>,
    stuck: HashSet<Execution>,
    counts: Counts,
    bugs: BTreeSet<String>,
}

impl Total {
    fn add(&mut self, report: &Report) {
        let (total, counts) = (&mut self.counts, report.counts);
        total.executions += counts.executions;
        total.over_bound += counts.over_bound;
        total.blocked += counts.blocked;
        total.bound_blocked += counts.bound_blocked;
        for bug in &report.bugs {
            let failure = &bug.failure;
            let bug = format!("{:?} {:?} {}", failure.kind, failure.site, failure.message);
            self.bugs.insert(bug);
        }
    }
}

/// Collects what a slice sees, and ends it after so many executions.
struct Slice<'a> {
    total: &'a mut Total,
    left: u64,
    twice: bool,
}

impl<M> Observer<M> for Slice<'_> {
    fn complete(&mut self, graph: &Graph) {
        self.twice |= !self.total.within.insert(Execution::of(graph));
    }

    fn over_bound(&mut self, graph: &Graph) {
        self.twice |= !self.total.beyond.insert(Execution::of(graph));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.twice |= !self.total.stuck.insert(Execution::of(graph));
    }

    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        self.left -= 1;
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Explores a unit with a fresh machine for at most `budget` executions.
fn slice<C: Model>(
    program: &Program,
    settings: Settings,
    unit: Option<Unit>,
    (budget, total): (u64, &mut Total),
) -> (Ending, Option<Unit>) {
    let mut observer = Slice {
        total,
        left: budget,
        twice: false,
    };
    let mut machine = ScriptMachine::new(program.clone());
    let answer = trust::slice::<C, _>(&mut machine, settings, unit, &mut observer);
    assert!(
        !observer.twice,
        "an execution was visited twice: {program:?}"
    );
    assert!(!answer.misjudged);
    total.add(&answer.report);
    (answer.report.ending, answer.rest)
}

/// As another process would receive it.
fn sent(unit: &Unit) -> Unit {
    let bytes = postcard::to_stdvec(unit).expect("a unit can be serialised");
    postcard::from_bytes(&bytes).expect("what was serialised can be read")
}

/// Explores everything in slices, whose lengths and order are random.
fn in_slices<C: Model>(program: &Program, settings: Settings, random: &mut Random) -> Total {
    let mut total = Total::default();
    let mut units = vec![None];
    while !units.is_empty() {
        let next = random.below(units.len() as u64) as usize;
        let unit: Option<Unit> = units.swap_remove(next);
        let budget = 1 + random.below(4);
        let (ending, rest) = slice::<C>(program, settings, unit, (budget, &mut total));
        assert!(matches!(ending, Ending::Complete | Ending::Stopped));
        let Some(mut rest) = rest else { continue };
        while random.once_in(2) {
            let Some(oldest) = rest.split() else { break };
            units.push(Some(sent(&oldest)));
        }
        units.push(Some(sent(&rest)));
    }
    total
}

fn compare<C: Model>(program: &Program, settings: Settings, seed: u64, what: &dyn Debug) -> bool {
    let mut expected = Total::default();
    let (ending, _) = slice::<C>(program, settings, None, (LIMIT, &mut expected));
    if ending != Ending::Complete {
        return false;
    }
    let found = in_slices::<C>(program, settings, &mut Random::new(seed));
    assert_eq!(found.counts, expected.counts, "{what:?}");
    assert!(found == expected, "other executions or bugs: {what:?}");
    true
}

fn compare_many<C: Model>(model: Axioms) {
    let programs = number("SEEDS").unwrap_or(PROGRAMS);
    let start = number("START").unwrap_or(0);
    let mut compared = 0;
    for seed in start..start + programs {
        let litmus = (None, random_litmus(seed));
        let others = FLAVOURS.map(|flavour| (Some(flavour), random_program(seed, flavour)));
        for (flavour, program) in others.into_iter().chain([litmus]) {
            let program = with_random_orders(&program, seed);
            let settings = Settings {
                keep_going: true,
                preemptions: None,
            };
            let what = (model, flavour, seed);
            compared += u64::from(compare::<C>(&program, settings, seed, &what));
        }
    }
    println!("{model:?}: {compared} searches compared");
    assert!(compared > 3 * programs, "too many programs were skipped");
}

#[test]
fn slices_under_sc_add_up() {
    compare_many::<SequentialConsistency>(Axioms::Sc);
}

#[test]
fn slices_under_tso_add_up() {
    compare_many::<TotalStoreOrder>(Axioms::Tso);
}

#[test]
fn slices_under_ra_add_up() {
    compare_many::<ReleaseAcquire>(Axioms::Ra);
}

#[test]
fn slices_under_rc11_add_up() {
    compare_many::<Rc11>(Axioms::Rc11);
}
