//! Helpers that the tests share.

use std::collections::HashSet;
use std::fmt::Debug;

use selvedge_core::MemoryOrder::{self, Relaxed};
use selvedge_core::graph::Graph;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::trust::{self, Bug, Ending, Observer, Report, Settings};
use selvedge_core::{Machine, SpinLoops};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Axioms, Execution, Flavour, Outcomes, Program, ScriptMachine};

/// A number that the environment gives, for longer runs: how many programs, and from which on.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The random programs that searches are compared on.
pub(crate) const FLAVOURS: [Flavour; 6] = [
    Flavour::Memory,
    Flavour::Mutexes,
    Flavour::Deadlocks,
    Flavour::Objects,
    Flavour::Loops,
    Flavour::Waiting,
];

/// The classes that a search visits.
#[derive(Default)]
pub(crate) struct Collect {
    pub complete: HashSet<Execution>,
    pub stuck: HashSet<Execution>,
    pub twice: bool,
}

impl<M> Observer<M> for Collect {
    fn complete(&mut self, graph: &Graph) {
        self.twice |= !self.complete.insert(Execution::of(graph));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.twice |= !self.stuck.insert(Execution::of(graph));
    }
}

impl Collect {
    /// Compares with what there is, in the search that ended with `report`.
    pub(crate) fn assert_is(&self, expected: &Outcomes, report: &Report, what: &dyn Debug) {
        assert!(!self.twice, "an execution was visited twice: {what:?}");
        for (seen, expected, kind) in [
            (&self.complete, &expected.complete, "executions"),
            (&self.stuck, &expected.stuck, "deadlocks"),
        ] {
            let lost: Vec<_> = expected.difference(seen).collect();
            let invented: Vec<_> = seen.difference(expected).collect();
            assert!(
                lost.is_empty() && invented.is_empty(),
                "{} {kind} lost, {} invented of {}: {what:?}\n{:?}\n{:?}",
                lost.len(),
                invented.len(),
                expected.len(),
                lost.first(),
                invented.first(),
            );
        }
        assert_eq!(self.complete.len() as u64, report.counts.executions);
        let fails = report.bugs.iter().any(|bug| bug.waiting.is_empty());
        assert_eq!(fails, expected.fails, "assertions: {what:?}");
    }
}

/// How many random programs were compared, and what came of it.
#[derive(Default)]
pub(crate) struct Tally {
    pub compared: u64,
    pub skipped: u64,
    /// The sum of the counts of all programs, and the largest count of one.
    pub all: usize,
    pub most: usize,
}

impl Tally {
    /// Adds what was counted in one program, unless that was too large to be compared.
    pub(crate) fn add(&mut self, counted: Option<usize>) {
        match counted {
            Some(count) => {
                self.compared += 1;
                self.all += count;
                self.most = self.most.max(count);
            }
            None => self.skipped += 1,
        }
    }
}

/// A failed assertion ends its thread early; where that is not what is compared, there are none.
pub(crate) fn without_assertions(mut program: Program) -> Program {
    for instruction in program.threads.iter_mut().flatten() {
        if matches!(instruction, I::AssertNot(..)) {
            *instruction = I::JumpIf(0, u128::MAX, 0);
        }
    }
    program
}

/// A thread that sees the flag must see the data.
pub(crate) fn message_passing(write: MemoryOrder, read: MemoryOrder) -> Program {
    let writer = vec![
        I::with(Relaxed),
        I::Store(0, 1),
        I::with(write),
        I::Store(1, 1),
    ];
    let reader = vec![
        I::with(read),
        I::Load(0, 1),
        I::JumpIf(0, 0, 6),
        I::with(Relaxed),
        I::Load(1, 0),
        I::AssertNot(1, 0),
    ];
    Program::of_workers(vec![writer, reader])
}

/// Two threads that announce themselves and enter unless they see the other.
pub(crate) fn dekker(order: MemoryOrder) -> Program {
    let worker = |mine, other| {
        vec![
            I::with(order),
            I::Store(mine, 1),
            I::with(order),
            I::Load(0, other),
            I::JumpIf(0, 1, 8),
            I::with(order),
            I::fetch_add(1, 2, 1),
            I::AssertNot(1, 1),
        ]
    };
    Program::of_workers(vec![worker(0, 1), worker(1, 0)])
}

/// Searches all of `program` under `model`.
pub(crate) fn explore(program: &Program, model: Axioms) -> (Collect, Report) {
    match model {
        Axioms::Sc => explore_with::<SequentialConsistency>(program),
        Axioms::Ra => explore_with::<ReleaseAcquire>(program),
        Axioms::Rc11 => explore_with::<Rc11>(program),
        Axioms::Tso => explore_with::<TotalStoreOrder>(program),
    }
}

fn explore_with<C: Model>(program: &Program) -> (Collect, Report) {
    let mut machine = ScriptMachine::new(program.clone());
    let mut seen = Collect::default();
    let settings = Settings {
        keep_going: true,
        ..Settings::default()
    };
    let report = trust::search::<C, _>(&mut machine, settings, &mut seen);
    assert_eq!(report.ending, Ending::Complete, "{program:?}");
    (seen, report)
}

/// The classes that a bounded search visits.
#[derive(Default)]
pub(crate) struct Bounded {
    pub within: HashSet<Execution>,
    pub beyond: HashSet<Execution>,
    pub stuck: HashSet<Execution>,
    pub bugs: Vec<Bug>,
    pub bugs_beyond: Vec<Bug>,
    pub twice: bool,
}

impl<M> Observer<M> for Bounded {
    fn complete(&mut self, graph: &Graph) {
        self.twice |= !self.within.insert(Execution::of(graph));
    }

    fn over_bound(&mut self, graph: &Graph) {
        self.twice |= !self.beyond.insert(Execution::of(graph));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.twice |= !self.stuck.insert(Execution::of(graph));
    }

    fn bug_beyond(&mut self, bug: &Bug, _: &M) {
        self.bugs_beyond.push(bug.clone());
    }

    fn restart(&mut self) {
        *self = Bounded::default();
    }
}

/// Searches what `program` does under `model` with at most `bound` preemptions.
pub(crate) fn explore_within(program: &Program, model: Axioms, bound: u32) -> Bounded {
    match model {
        Axioms::Sc => within::<SequentialConsistency>(program, bound),
        Axioms::Ra => within::<ReleaseAcquire>(program, bound),
        Axioms::Rc11 => within::<Rc11>(program, bound),
        Axioms::Tso => within::<TotalStoreOrder>(program, bound),
    }
}

fn within<C: Model>(program: &Program, bound: u32) -> Bounded {
    let settings = Settings {
        keep_going: true,
        preemptions: Some(bound),
    };
    let mut seen = Bounded::default();
    let mut machine = ScriptMachine::new(program.clone());
    let report = trust::search::<C, _>(&mut machine, settings, &mut seen);
    assert_eq!(report.ending, Ending::Complete, "{program:?}");
    seen.bugs = report.bugs;
    seen
}

/// Counts how often a program is started.
pub(crate) struct Counting {
    pub machine: ScriptMachine,
    pub starts: u64,
}

impl Machine for Counting {
    fn reset(&mut self) {
        self.starts += 1;
        self.machine.reset();
    }

    selvedge_core::forward_machine!(machine: around, pending, initial, resume, pointless);
}

impl SpinLoops for Counting {
    selvedge_core::forward_machine!(machine: quiet, never_races, can_retry, retry, misjudged);
}

/// Claims after each search that it had misjudged a loop.
pub(crate) struct Fickle {
    machine: ScriptMachine,
    searches: u32,
}

impl Fickle {
    pub(crate) fn new() -> Fickle {
        Fickle {
            machine: ScriptMachine::new(Program::of_workers(vec![vec![I::Store(0, 1)]])),
            searches: 0,
        }
    }

    pub(crate) fn assert_never_settled(&self, report: Report) {
        let Ending::Internal(reason) = report.ending else {
            panic!("{:?}", report.ending);
        };
        assert!(reason.contains("judged differently"), "{reason}");
        assert_eq!(self.searches, 10_000);
    }
}

impl Machine for Fickle {
    selvedge_core::forward_machine!(machine: around, reset, pending, initial, resume, pointless);
}

impl SpinLoops for Fickle {
    fn misjudged(&mut self) -> bool {
        self.searches += 1;
        true
    }

    selvedge_core::forward_machine!(machine: quiet, never_races, can_retry, retry);
}
