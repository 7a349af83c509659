//! The optimal search against brute force on random programs.

use std::collections::HashSet;

use selvedge_core::graph::Graph;
use selvedge_core::model::SequentialConsistency;
use selvedge_core::trust::{self, Ending, Observer, Report, Settings};
use selvedge_testkit::{Execution, Flavour, Program, ScriptMachine, brute_force, random_program};

/// How many programs of each flavour.
const PROGRAMS: u64 = 500;
/// Programs with more prefixes than this are left out.
const LIMIT: usize = 20_000;

#[derive(Default)]
struct Collect {
    complete: HashSet<Execution>,
    stuck: HashSet<Execution>,
    twice: bool,
}

impl<M> Observer<M> for Collect {
    fn complete(&mut self, graph: &Graph) {
        self.twice |= !self.complete.insert(Execution::of(graph));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.twice |= !self.stuck.insert(Execution::of(graph));
    }
}

const ALL_BUGS: Settings = Settings {
    keep_going: true,
    preemptions: None,
};

fn explore(program: &Program) -> (Collect, Report) {
    let mut machine = ScriptMachine::new(program.clone());
    let mut seen = Collect::default();
    let report = trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut seen);
    (seen, report)
}

fn compare(program: &Program) -> Option<usize> {
    let expected = brute_force(&mut ScriptMachine::new(program.clone()), LIMIT)?;
    let (seen, report) = explore(program);
    assert_eq!(report.ending, Ending::Complete, "{program:?}");
    assert!(!seen.twice, "an execution was visited twice\n{program:?}");
    let lost = expected.complete.difference(&seen.complete).count();
    let invented = seen.complete.difference(&expected.complete).count();
    assert_eq!(
        (lost, invented),
        (0, 0),
        "lost and invented of {} executions\n{program:?}",
        expected.complete.len()
    );
    let lost = expected.stuck.difference(&seen.stuck).count();
    let invented = seen.stuck.difference(&expected.stuck).count();
    assert_eq!(
        (lost, invented),
        (0, 0),
        "lost and invented deadlocks\n{program:?}"
    );
    assert_eq!(seen.complete.len() as u64, report.counts.executions);
    let fails = report.bugs.iter().any(|bug| bug.waiting.is_empty());
    assert_eq!(fails, expected.fails, "assertions\n{program:?}");
    Some(expected.complete.len())
}

fn compare_many(flavour: Flavour) {
    let mut compared = 0;
    let mut executions = 0;
    for seed in 0..PROGRAMS {
        let program = random_program(seed, flavour);
        if let Some(count) = compare(&program) {
            compared += 1;
            executions += count;
        }
    }
    println!("{flavour:?}: {compared} programs, {executions} executions");
    assert!(
        compared * 10 > PROGRAMS * 8,
        "too many programs were skipped"
    );
}

#[test]
fn memory_programs_have_the_executions_of_brute_force() {
    compare_many(Flavour::Memory);
}

#[test]
fn programs_with_mutexes_have_the_executions_of_brute_force() {
    compare_many(Flavour::Mutexes);
}

#[test]
fn programs_with_deadlocks_have_the_executions_of_brute_force() {
    compare_many(Flavour::Deadlocks);
}

#[test]
fn programs_with_objects_have_the_executions_of_brute_force() {
    compare_many(Flavour::Objects);
}

#[test]
fn programs_with_loops_have_the_executions_of_brute_force() {
    compare_many(Flavour::Loops);
}
