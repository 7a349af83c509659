//! The search up to reads-from against brute force on random programs.

use std::collections::HashSet;
use std::ops::ControlFlow;

use selvedge_core::graph::Graph;
use selvedge_core::model::{Model, ReleaseAcquire, SequentialConsistency};
use selvedge_core::report::{Counts, Ending, Observer, Report};
use selvedge_core::tracer::{self, Consistency, SaturatedRa, SaturatedSc};
use selvedge_core::trust::{self, Settings};
use selvedge_core::{EventId, Machine, Outcome, Pending, Stop, ThreadId, Value};
use selvedge_testkit::execution::Record;
use selvedge_testkit::{
    Axioms, Execution, Flavour, Instruction, Outcomes, Program, ScriptMachine, allowed,
    brute_force, random_program, with_random_orders,
};

use crate::common::number;

/// The value that the exchanges of random loops write.
const SPUN: Value = 7;
/// How many programs of each flavour.
const PROGRAMS: u64 = 500;
/// How many of those that do little else than wait, which take longest.
const WAITING: u64 = 150;
/// Programs with more prefixes than this are left out.
const LIMIT: usize = 4_000;

#[derive(Default)]
struct Collect {
    program: Program,
    complete: HashSet<Execution>,
    stuck: HashSet<Execution>,
    twice: bool,
    /// Stops after this many executions.
    most: Option<u64>,
}

/// Program order and reads-from alone.
fn class(mut execution: Execution) -> Execution {
    execution.coherence.clear();
    execution
}

/// The same without what threads do that go round for ever. Where the last exchange of such a
/// thread finds what it writes, who reads from it counts as reading what was there before.
fn settled_class(program: &Program, execution: Execution) -> Execution {
    let mut class = class(execution);
    let records = class.threads.iter().flatten();
    if !records.into_iter().any(is_silent) {
        return class;
    }
    let spins = spinning(program, &class);
    let iterations: Vec<Option<(usize, Option<EventId>)>> = (class.threads.iter().zip(spins))
        .map(|(thread, spins)| {
            let last = thread.iter().rposition(|record| record.at.is_some())?;
            let record = &thread[last];
            (spins && is_silent(record)).then_some((last, record.source?))
        })
        .collect();
    let found_by = |id: EventId| {
        let (last, source) = iterations[id.thread.index()]?;
        (last == id.index as usize).then_some(source)
    };
    for record in class.threads.iter_mut().flatten() {
        while let Some(found) = record.source.flatten().and_then(found_by) {
            record.source = Some(found);
        }
    }
    class
}

/// Whether an exchange of a random loop found what it writes.
fn is_silent(record: &Record) -> bool {
    record.read == Some(SPUN) && record.wrote == Some(SPUN)
}

/// For each thread of `program`, whether it spins forever at the end of an execution.
fn spinning(program: &Program, execution: &Execution) -> Vec<bool> {
    let mut machine = ScriptMachine::new(program.clone());
    let threads = || (0..execution.threads.len() as u32).map(ThreadId);
    let mut records: Vec<_> = execution.threads.iter().map(|all| all.iter()).collect();
    let mut further = true;
    while further {
        further = false;
        for thread in threads() {
            while let Pending::Op(_) = machine.pending(thread)
                && let Some(record) = records[thread.index()].next()
            {
                let read = record.read.unwrap_or_default();
                let wrote = record.wrote.filter(|_| record.read.is_some());
                machine.resume(thread, Outcome { read, wrote }, &[]);
                further = true;
            }
        }
    }
    let spins = |thread| {
        matches!(
            machine.pending(thread),
            Pending::Stopped(Stop::Spinning { .. })
        )
    };
    threads().map(spins).collect()
}

fn classes(program: &Program, executions: HashSet<Execution>) -> HashSet<Execution> {
    let class = |execution| settled_class(program, execution);
    executions.into_iter().map(class).collect()
}

impl Collect {
    fn of(program: &Program) -> Collect {
        Collect {
            program: program.clone(),
            ..Collect::default()
        }
    }
}

impl<M> Observer<M> for Collect {
    fn complete(&mut self, graph: &Graph) {
        let class = settled_class(&self.program, Execution::of(graph));
        self.twice |= !self.complete.insert(class);
    }

    fn stuck(&mut self, graph: &Graph) {
        let class = settled_class(&self.program, Execution::of(graph));
        self.twice |= !self.stuck.insert(class);
    }

    fn restart(&mut self) {
        *self = Collect {
            most: self.most,
            ..Collect::of(&self.program)
        };
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        match self.most {
            Some(most) if counts.executions + counts.blocked > most => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn explore<C: Consistency>(program: &Program) -> (Collect, Report) {
    let mut machine = ScriptMachine::new(program.clone());
    let mut seen = Collect::of(program);
    let report = tracer::search::<C, _>(&mut machine, true, &mut seen);
    (seen, report)
}

/// How many classes there are, each visited once, and how many executions are blocked although no
/// thread waits forever in them.
fn compare<C: Consistency>(program: &Program, expected: Outcomes) -> (usize, u64) {
    let complete = classes(program, expected.complete);
    let stuck = classes(program, expected.stuck);
    let (seen, report) = explore::<C>(program);
    assert_eq!(report.ending, Ending::Complete, "{program:?}");
    assert!(!seen.twice, "a class was visited twice\n{program:?}");
    let lost = complete.difference(&seen.complete).count();
    let invented = seen.complete.difference(&complete).count();
    assert_eq!(
        (lost, invented),
        (0, 0),
        "lost and invented of {} classes\n{program:?}",
        complete.len()
    );
    let lost = stuck.difference(&seen.stuck).count();
    let invented = seen.stuck.difference(&stuck).count();
    assert_eq!(
        (lost, invented),
        (0, 0),
        "lost and invented deadlocks\n{program:?}"
    );
    assert_eq!(seen.complete.len() as u64, report.counts.executions);
    let fails = report.bugs.iter().any(|bug| bug.waiting.is_empty());
    assert_eq!(fails, expected.fails, "assertions\n{program:?}");
    let blocked = report.counts.blocked - seen.stuck.len() as u64;
    (complete.len(), blocked)
}

type BruteForce = fn(&mut ScriptMachine, usize) -> Option<Outcomes>;

/// Random programs of one flavour; `expected_blocked` executions are blocked in those without
/// assumptions.
fn compare_many<C: Consistency>(flavour: Flavour, brute_force: BruteForce, expected_blocked: u64) {
    let mut compared = 0;
    let mut count = 0;
    let mut blocked = 0;
    let programs = number("SEEDS").unwrap_or(match flavour {
        Flavour::Waiting => WAITING,
        _ => PROGRAMS,
    });
    let start = number("START").unwrap_or(0);
    for seed in start..start + programs {
        let mut program = random_program(seed, flavour);
        // Orders and fences make no difference to either model.
        if seed % 4 == 0 {
            program = with_random_orders(&program, seed);
        }
        let mut machine = ScriptMachine::new(program.clone());
        if let Some(expected) = brute_force(&mut machine, LIMIT) {
            compared += 1;
            let found = compare::<C>(&program, expected);
            count += found.0;
            let assumes =
                |instruction: &Instruction| matches!(instruction, Instruction::Assume(..));
            if !program.threads.iter().flatten().any(assumes) {
                blocked += found.1;
            }
        }
    }
    println!("{flavour:?}: {compared} programs, {count} classes, {blocked} blocked");
    assert!(
        compared * 10 > programs * 8,
        "too many programs were skipped"
    );
    if number("SEEDS").or(number("START")).is_none() {
        assert_eq!(blocked, expected_blocked, "blocked executions");
    }
}

/// The same for one program: how many executions are blocked under each model.
pub(crate) fn compare_both(program: &Program) -> (u64, u64) {
    let machine = || ScriptMachine::new(program.clone());
    let all = brute_force(&mut machine(), 100_000).expect("it is not that large");
    let (_, under_sc) = compare::<SaturatedSc>(program, all);
    let all = allowed(&mut machine(), Axioms::Ra, 100_000).expect("it is not that large");
    let (_, under_ra) = compare::<SaturatedRa>(program, all);
    (under_sc, under_ra)
}

/// Every interleaving.
fn compare_sc(flavour: Flavour, blocked: u64) {
    compare_many::<SaturatedSc>(flavour, brute_force, blocked);
}

/// Straight from the axioms.
fn compare_ra(flavour: Flavour, blocked: u64) {
    let axioms = |machine: &mut ScriptMachine, limit| allowed(machine, Axioms::Ra, limit);
    compare_many::<SaturatedRa>(flavour, axioms, blocked);
}

#[test]
fn memory_programs_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Memory, 0);
}

#[test]
fn programs_with_mutexes_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Mutexes, 0);
}

#[test]
fn programs_with_deadlocks_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Deadlocks, 0);
}

#[test]
fn programs_with_objects_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Objects, 0);
}

#[test]
fn programs_with_loops_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Loops, 673);
}

#[test]
fn memory_programs_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Memory, 0);
}

#[test]
fn programs_with_mutexes_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Mutexes, 0);
}

#[test]
fn programs_with_deadlocks_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Deadlocks, 0);
}

#[test]
fn programs_with_objects_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Objects, 0);
}

#[test]
fn programs_with_loops_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Loops, 459);
}

#[test]
fn programs_that_wait_have_the_classes_of_brute_force_under_sc() {
    compare_sc(Flavour::Waiting, 50);
}

#[test]
fn programs_that_wait_have_the_classes_of_brute_force_under_ra() {
    compare_ra(Flavour::Waiting, 50);
}

/// Never more executions than the graph search has, and exactly the classes of its graphs.
fn compare_with_graphs<C: Consistency, G: Model>(flavour: Flavour) {
    let (mut fewer, mut all) = (0, 0);
    // Other programs than those that are compared with brute force.
    for seed in PROGRAMS..PROGRAMS + 100 {
        let program = random_program(seed, flavour);
        let mut machine = ScriptMachine::new(program.clone());
        let mut graphs = Collect {
            most: Some(2000),
            ..Collect::of(&program)
        };
        let settings = Settings {
            keep_going: true,
            ..Settings::default()
        };
        let graph_report = trust::search::<G, _>(&mut machine, settings, &mut graphs);
        if graph_report.ending != Ending::Complete {
            continue;
        }
        let (seen, report) = explore::<C>(&program);
        assert!(
            report.counts.executions <= graph_report.counts.executions,
            "{program:?}"
        );
        assert_eq!(seen.complete, graphs.complete, "{program:?}");
        assert_eq!(seen.stuck, graphs.stuck, "{program:?}");
        fewer += u32::from(report.counts.executions < graph_report.counts.executions);
        all += 1;
    }
    println!("{flavour:?}: fewer executions in {fewer} of {all} programs");
    assert!(all > 50, "too many programs were skipped");
}

#[test]
fn there_are_never_more_executions_than_graphs() {
    for flavour in Flavour::ALL {
        compare_with_graphs::<SaturatedRa, ReleaseAcquire>(flavour);
        compare_with_graphs::<SaturatedSc, SequentialConsistency>(flavour);
    }
}
