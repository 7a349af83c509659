//! Searches that are stopped between executions, split and continued by fresh searches, against
//! searches in one piece: of 2,002 random programs, under every model, with and without a bound.

use std::collections::HashSet;
use std::fmt::Debug;
use std::ops::ControlFlow;

use selvedge_core::graph::Graph;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::random::Random;
use selvedge_core::trust::{
    self, Answer, Bug, Counts, Ending, Found, Frontier, Observer, Settings, Unit,
};
use selvedge_core::{Fact, Failure, Machine, Outcome, Portable, SpinLoops, ThreadId};
use selvedge_testkit::{
    Axioms, Execution, Program, ScriptMachine, random_litmus, random_program, with_random_orders,
};

use crate::common::{FLAVOURS, number};

/// How many programs of each of the seven flavours.
const PROGRAMS: u64 = 286;
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
fn slice<C: Model, M: Portable>(
    machine: &mut M,
    settings: Settings,
    work: (Option<Unit>, Vec<Failure>),
    (budget, seen): (u64, &mut Seen),
) -> Answer {
    let mut observer = Slice {
        seen,
        left: budget,
        twice: false,
    };
    let answer = trust::slice::<C, _>(machine, settings, work, &mut observer);
    assert!(!observer.twice, "an execution was visited twice");
    answer
}

/// As another process would receive it.
fn sent(unit: &Unit) -> Unit {
    let bytes = postcard::to_stdvec(unit).expect("a unit can be serialised");
    postcard::from_bytes(&bytes).expect("what was serialised can be read")
}

/// The length of a slice.
fn budget(random: &mut Random) -> u64 {
    match random.below(8) {
        0..5 => 1 + random.below(4),
        5..7 => 5 + random.below(46),
        _ => 200,
    }
}

/// The knowledge of a program, as ranges of facts.
type Learned = [(Fact, Fact)];

/// Explores everything in slices, whose lengths and order are random. Some are explored in vain. Machines are made with
/// what is known of the program. How often the search started over is returned as well.
fn in_slices<C: Model, M: Portable>(
    machine: &dyn Fn(&Learned) -> M,
    settings: Settings,
    random: &mut Random,
) -> (Result, Seen, u32) {
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
        let budget = budget(random);
        let known = frontier.known_before(id);
        let mut machine = machine(frontier.learned());
        let work = (unit, known);
        let answer = slice::<C, M>(&mut machine, settings, work, (budget, &mut seen));
        let (relied, learned) = (machine.relied_on(), machine.learned());
        if frontier.learn(&relied, &learned) || answer.misjudged {
            // Units that others have by now are of no interest any more.
            frontier.start_over();
            seen = Seen::default();
            continue;
        }
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
    let result = Result::new(found.counts, &found.bugs, first);
    (result, seen, frontier.epoch())
}

fn compare<C: Model>(program: &Program, settings: Settings, seed: u64, what: &dyn Debug) -> bool {
    let mut expected = Seen::default();
    let all = (None, Vec::new());
    let machine = |_: &[_]| ScriptMachine::new(program.clone());
    let answer = slice::<C, _>(&mut machine(&[]), settings, all, (LIMIT, &mut expected));
    let report = answer.report;
    if report.ending == Ending::Stopped {
        return false;
    }
    let first = report.ending == Ending::FirstBug;
    let whole = Result::new(report.counts, &report.bugs, first);
    let (result, seen, epochs) = in_slices::<C, _>(&machine, settings, &mut Random::new(seed));
    assert_eq!(result, whole, "{what:?}");
    assert_eq!(epochs, 0, "{what:?}");
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
            // Without a bound, and with one of three.
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

/// The fact about a program that [`Facts`] relies on not to hold.
const FACT: Fact = 7;

/// A machine that does something else once it knows a fact, which holds if some operation reads or writes 2.
struct Facts {
    machine: ScriptMachine,
    knows: bool,
    found: bool,
}

impl Facts {
    fn new([before, after]: [&Program; 2], learned: &[(Fact, Fact)]) -> Facts {
        let mut facts = Facts {
            machine: ScriptMachine::new(before.clone()),
            knows: false,
            found: false,
        };
        if learned
            .iter()
            .any(|range| (range.0..=range.1).contains(&FACT))
        {
            facts.machine = ScriptMachine::new(after.clone());
            facts.knows = true;
        }
        facts
    }
}

impl Machine for Facts {
    selvedge_core::forward_machine!(machine: reset, around, pending, initial);

    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        self.found |= outcome.read == 2 || outcome.wrote == Some(2);
        self.machine.resume(thread, outcome, clock);
    }
}

impl SpinLoops for Facts {
    selvedge_core::forward_machine!(machine: quiet, never_races);

    fn misjudged(&mut self) -> bool {
        self.found && !self.knows
    }
}

impl Portable for Facts {
    fn relied_on(&mut self) -> Vec<Fact> {
        let relies = !self.knows;
        relies.then_some(FACT).into_iter().collect()
    }

    fn learned(&mut self) -> Vec<(Fact, Fact)> {
        let learned = self.found.then_some((FACT - 1, FACT));
        learned.into_iter().collect()
    }
}

/// Whichever slice learns it, and when: the result is that of the program that knows.
#[test]
fn slices_that_learn_something_start_over() {
    let mut started_over = [0, 0];
    for seed in 0..300 {
        let programs = [0, 1].map(|n| {
            let program = random_program(seed, FLAVOURS[seed as usize % FLAVOURS.len()]);
            with_random_orders(&program, seed + 1000 * n)
        });
        let settings = Settings {
            keep_going: true,
            preemptions: None,
        };
        let machine = |learned: &[_]| Facts::new([&programs[0], &programs[1]], learned);
        let mut learned = Vec::new();
        let whole = loop {
            let (mut machine, mut seen) = (machine(&learned), Seen::default());
            let work = (None, Vec::new());
            let answer = slice::<Rc11, _>(&mut machine, settings, work, (LIMIT, &mut seen));
            if !answer.misjudged {
                break (answer.report, seen);
            }
            learned = machine.learned();
        };
        let (report, expected) = whole;
        if report.ending != Ending::Complete {
            continue;
        }
        let result = Result::new(report.counts, &report.bugs, false);
        let mut random = Random::new(seed);
        let (found, seen, epochs) = in_slices::<Rc11, _>(&machine, settings, &mut random);
        assert_eq!((found, epochs), (result, learned.len() as u32), "{seed}");
        assert!(seen == expected, "other executions: {seed}");
        started_over[epochs as usize] += 1;
    }
    println!("{started_over:?} searches did not start over, and did");
    assert!(
        started_over.iter().all(|&searches| searches > 40),
        "{started_over:?}"
    );
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
