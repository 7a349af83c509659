//! The interleaving engines against brute force on random programs.

use std::collections::HashMap;

use selvedge_core::dpor::{self, Engine, Statistics};
use selvedge_core::graph::Graph;
use selvedge_core::report::{Ending, Observer, Report};
use selvedge_core::trust::Settings;
use selvedge_testkit::{
    Execution, Flavour, Instruction, Preemptions, Program, ScriptMachine, least_preemptions,
    random_program,
};

/// How many programs of each flavour.
const PROGRAMS: u64 = 450;
/// Programs with more states than this are left out.
const LIMIT: usize = 3_000;

/// How often each class was seen.
#[derive(Default)]
struct Seen {
    complete: HashMap<Execution, u32>,
    over_bound: HashMap<Execution, u32>,
    stuck: HashMap<Execution, u32>,
}

impl<M> Observer<M> for Seen {
    fn complete(&mut self, graph: &Graph) {
        *self.complete.entry(Execution::of(graph)).or_default() += 1;
    }

    fn over_bound(&mut self, graph: &Graph) {
        *self.over_bound.entry(Execution::of(graph)).or_default() += 1;
    }

    fn stuck(&mut self, graph: &Graph) {
        *self.stuck.entry(Execution::of(graph)).or_default() += 1;
    }
}

fn explore(program: &Program, engine: Engine, bound: Option<u32>) -> (Seen, Report, Statistics) {
    let mut machine = ScriptMachine::new(program.clone());
    let mut seen = Seen::default();
    let settings = Settings {
        keep_going: true,
        preemptions: bound,
    };
    let (report, statistics) = dpor::search(&mut machine, engine, settings, &mut seen);
    (seen, report, statistics)
}

fn check(program: &Program, engine: Engine, bound: Option<u32>, expected: &Preemptions) {
    let (seen, report, statistics) = explore(program, engine, bound);
    let what = || format!("{engine} with bound {bound:?}\n{program:?}");
    let ending = match engine.complete() {
        true => Ending::Complete,
        false => Ending::Lossy,
    };
    assert_eq!(report.ending, ending, "{}", what());
    // Where a failed assertion ends a thread early, others may wait for it for good in an execution
    // that is complete nevertheless; where they stopped to wait does not count then.
    let mut instructions = program.threads.iter().flatten();
    let early = instructions.any(|i| matches!(i, Instruction::AssertNot(..)));
    let wanted = |preemptions: u32| bound.is_none_or(|bound| preemptions <= bound);
    for (execution, &times) in &seen.complete {
        let least = expected.complete.get(execution);
        let least = *least.unwrap_or_else(|| panic!("an execution was invented by {}", what()));
        let beyond = !wanted(least);
        assert!(!beyond || early, "counted beyond the bound by {}", what());
        assert!(
            times == 1 || !engine.visits_once(),
            "an execution was visited twice by {}",
            what()
        );
    }
    for execution in seen.over_bound.keys() {
        let least = expected.complete[execution];
        assert!(!wanted(least), "not counted by {}", what());
    }
    if engine == Engine::OptimalDpor {
        assert_eq!(statistics.sleep_blocked, 0, "blocked: {}", what());
    }
    if !engine.complete() {
        return;
    }
    let within = expected.complete.iter().filter(|&(_, &p)| wanted(p));
    let lost = within.filter(|&(execution, _)| !seen.complete.contains_key(execution));
    assert_eq!(lost.count(), 0, "classes lost by {}", what());
    if bound.is_none() {
        assert_eq!(
            seen.stuck.len(),
            expected.stuck.len(),
            "deadlocks lost or invented by {}",
            what()
        );
        assert!(
            !engine.visits_once() || seen.stuck.values().all(|&times| times == 1),
            "a deadlock was visited twice by {}",
            what()
        );
    } else {
        let mut stuck = expected.stuck.iter().filter(|&(_, &p)| wanted(p));
        assert!(
            stuck.all(|(execution, _)| seen.stuck.contains_key(execution)),
            "deadlocks lost by {}",
            what()
        );
    }
}

/// Every engine, with every bound that matters.
fn check_all(program: &Program, expected: &Preemptions) {
    for engine in Engine::ALL {
        if engine.bounded() {
            for bound in 0..=expected.largest() {
                check(program, engine, Some(bound), expected);
            }
        } else {
            check(program, engine, None, expected);
        }
    }
}

fn compare_many(flavour: Flavour) {
    let (mut compared, mut classes) = (0, 0);
    for seed in 0..PROGRAMS {
        let program = random_program(seed, flavour);
        let mut machine = ScriptMachine::new(program.clone());
        let Some(expected) = least_preemptions(&mut machine, LIMIT) else {
            continue;
        };
        compared += 1;
        classes += expected.complete.len();
        check_all(&program, &expected);
    }
    println!("{flavour:?}: {compared} programs, {classes} classes");
    assert!(compared > 380, "too many programs were skipped: {compared}");
}

#[test]
fn memory_programs_have_the_classes_of_brute_force() {
    compare_many(Flavour::Memory);
}

#[test]
fn programs_with_mutexes_have_the_classes_of_brute_force() {
    compare_many(Flavour::Mutexes);
}

#[test]
fn programs_with_deadlocks_have_the_classes_of_brute_force() {
    compare_many(Flavour::Deadlocks);
}

#[test]
fn programs_with_objects_have_the_classes_of_brute_force() {
    compare_many(Flavour::Objects);
}

#[test]
fn programs_with_loops_have_the_classes_of_brute_force() {
    compare_many(Flavour::Loops);
}

/// Every engine on one program; returns how many complete classes and deadlocks it has.
fn compare_all(program: &Program) -> (usize, usize) {
    let mut machine = ScriptMachine::new(program.clone());
    let expected = least_preemptions(&mut machine, LIMIT).expect("the program is small");
    check_all(program, &expected);
    (expected.complete.len(), expected.stuck.len())
}

#[test]
fn two_locks_in_opposite_order_have_two_executions_and_a_deadlock() {
    let worker = |thread, first, second| {
        let lock = |mutex| Instruction::lock(mutex, thread);
        let unlock = Instruction::unlock;
        vec![lock(first), lock(second), unlock(second), unlock(first)]
    };
    let program = Program::of_workers(vec![worker(1, 10, 11), worker(2, 11, 10)]);
    assert_eq!(compare_all(&program), (2, 1));
}

/// The last thread waits for good once the lock is taken from it, and main, the only one left, has been
/// put to sleep: no execution ends there, but the race for the lock counts.
#[test]
fn a_thread_that_waits_races_where_all_others_sleep() {
    let program = Program {
        threads: vec![
            vec![Instruction::Create(1), Instruction::Load(0, 0)],
            vec![Instruction::Create(2), Instruction::lock(10, 1)],
            vec![
                Instruction::lock(10, 2),
                Instruction::Store(0, 1),
                Instruction::unlock(10),
            ],
        ],
        initial: Vec::new(),
    };
    assert_eq!(compare_all(&program), (2, 1));
}
