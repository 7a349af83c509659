//! Searches that are stopped between executions, split and continued by fresh searches, against
//! searches in one piece.

use std::collections::HashSet;
use std::fmt::Debug;
use std::ops::ControlFlow;

use selvedge_core::Failure;
use selvedge_core::graph::Graph;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::random::Random;
use selvedge_core::trust::{
    self, Answer, Bug, Counts, Ending, Found, Frontier, Observer, Settings, Unit,
};
use selvedge_testkit::{
    Axioms, Execution, Program, ScriptMachine, random_litmus, random_program, with_random_orders,
};

use crate::common::{FLAVOURS, number};

/// How many programs of each flavour, for each model.
const PROGRAMS: u64 = 80;
/// Programs with more executions than this are left out.
const LIMIT: u64 = 400;

/// The executions that a search, in one piece or in many, has seen.
#[derive(Default, PartialEq, Eq)]
struct Seen {
    within: HashSet<Execution>,
    beyond: HashSet<Execution>,
    stuck: HashSet<Execution>,
}

/// Collects what a slice sees, and ends it after this many executions.
struct Slice<'a> {
    seen: &'a mut Seen,
    left: u64,
    twice: bool,
}

impl<M> Observer<M> for Slice<'_> {
    fn complete(&mut self, graph: &Graph) {
        self.twice |= !self.seen.within.insert(Execution::of(graph));
    }

    fn over_bound(&mut self, graph: &Graph) {
        self.twice |= !self.seen.beyond.insert(Execution::of(graph));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.twice |= !self.seen.stuck.insert(Execution::of(graph));
    }

    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        self.left -= 1;
        match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The result of a search: counts, bugs in the order in which they are found, and how it ends.
#[derive(Debug, PartialEq, Eq)]
struct Result {
    counts: Counts,
    bugs: Vec<String>,
    first: bool,
}

impl Result {
    fn new(counts: Counts, bugs: &[Bug], first: bool) -> Result {
        let bugs = bugs.iter().map(|bug| {
            let (failure, witness) = (&bug.failure, &bug.witness);
            format!(
                "{:?} {:?} {} {:?}",
                failure.kind, failure.site, failure.message, witness.steps
            )
        });
        Result {
            counts,
            bugs: bugs.collect(),
            first,
        }
    }
}

/// Explores a unit with a fresh machine for at most `budget` executions.
fn slice<C: Model>(
    program: &Program,
    settings: Settings,
    work: (Option<Unit>, Vec<Failure>),
    (budget, seen): (u64, &mut Seen),
) -> Answer {
    let mut observer = Slice {
        seen,
        left: budget,
        twice: false,
    };
    let mut machine = ScriptMachine::new(program.clone());
    let answer = trust::slice::<C, _>(&mut machine, settings, work, &mut observer);
    assert!(
        !observer.twice,
        "an execution was visited twice: {program:?}"
    );
    assert!(!answer.misjudged);
    answer
}

/// As another process would receive it.
fn sent(unit: &Unit) -> Unit {
    let bytes = postcard::to_stdvec(unit).expect("a unit can be serialised");
    postcard::from_bytes(&bytes).expect("what was serialised can be read")
}

/// Explores everything in slices, whose lengths and order are random. Some are explored in vain.
fn in_slices<C: Model>(
    program: &Program,
    settings: Settings,
    random: &mut Random,
) -> (Result, Seen) {
    let mut seen = Seen::default();
    let mut frontier: Frontier<Option<Unit>, Bug> = Frontier::new(None);
    let mut taken = Vec::new();
    while !frontier.is_done() {
        while let Some(unit) = frontier.take() {
            taken.push(unit);
        }
        let next = random.below(taken.len() as u64) as usize;
        let (id, unit) = taken.swap_remove(next);
        if !frontier.wants(id) {
            continue;
        }
        if random.once_in(20) {
            frontier.give_back(id);
            continue;
        }
        let share = unit.as_ref().map_or(1.0, Unit::share);
        let budget = 1 + random.below(4);
        let known = frontier.known_before(id);
        let answer = slice::<C>(program, settings, (unit, known), (budget, &mut seen));
        let mut rest = Vec::new();
        if let Some(mut left) = answer.rest {
            assert!(
                (0.0..=share + 1e-9).contains(&left.share()),
                "a slice makes the part of the tree that is left smaller"
            );
            while random.once_in(2) {
                let Some(oldest) = left.split() else { break };
                rest.push(oldest);
            }
            rest.push(left);
        }
        // The oldest choice comes last in the tree.
        let rest = rest
            .iter()
            .rev()
            .map(|unit| (Some(sent(unit)), unit.share()));
        let report = answer.report;
        let ending = match report.ending {
            Ending::Complete | Ending::Stopped => None,
            ending => Some(ending),
        };
        let found = Found {
            counts: report.counts,
            bugs: report.bugs,
            first_bug: None,
            beyond: None,
            unrolled: report.unrolled,
            ending,
        };
        frontier.answer(id, found, rest.collect());
    }
    let found = frontier.found();
    let first = found.ending == Some(Ending::FirstBug);
    (Result::new(found.counts, &found.bugs, first), seen)
}

fn compare<C: Model>(program: &Program, settings: Settings, seed: u64, what: &dyn Debug) -> bool {
    let mut expected = Seen::default();
    let all = (None, Vec::new());
    let answer = slice::<C>(program, settings, all, (LIMIT, &mut expected));
    let report = answer.report;
    if report.ending == Ending::Stopped {
        return false;
    }
    let first = report.ending == Ending::FirstBug;
    let whole = Result::new(report.counts, &report.bugs, first);
    let (result, seen) = in_slices::<C>(program, settings, &mut Random::new(seed));
    assert_eq!(result, whole, "{what:?}");
    assert!(first || seen == expected, "other executions: {what:?}");
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
            // Without a bound and with one of three.
            for preemptions in [None, Some((seed % 3) as u32)] {
                let settings = Settings {
                    keep_going: seed % 4 != 0,
                    preemptions,
                };
                let what = (model, flavour, seed, preemptions);
                compared += u64::from(compare::<C>(&program, settings, seed, &what));
            }
        }
    }
    println!("{model:?}: {compared} searches compared");
    assert!(compared > 7 * programs, "too many programs were skipped");
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
