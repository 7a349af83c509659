//! The optimal search against brute force on random programs.

use selvedge_core::objects::ObjectFunction;
use selvedge_testkit::{
    Axioms, Flavour, Instruction, Program, ScriptMachine, brute_force, random_program,
};

use crate::common::{Tally, explore, number};

/// How many programs of each flavour.
const PROGRAMS: u64 = 500;
/// Programs with more prefixes than this are left out.
const LIMIT: usize = 10_000;

fn compare(program: &Program) -> Option<usize> {
    let expected = brute_force(&mut ScriptMachine::new(program.clone()), LIMIT)?;
    let (seen, report) = explore(program, Axioms::Sc);
    seen.assert_is(&expected, &report, program);
    Some(expected.complete.len())
}

fn compare_many(flavour: Flavour) {
    let mut tally = Tally::default();
    let programs = number("SEEDS").unwrap_or(PROGRAMS);
    let start = number("START").unwrap_or(0);
    for seed in start..start + programs {
        tally.add(compare(&random_program(seed, flavour)));
    }
    let Tally { compared, all, .. } = tally;
    println!("{flavour:?}: {compared} programs, {all} executions");
    assert!(
        compared * 10 > programs * 8,
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

/// A thread waits on a condition variable for ever, and another one leaves a slot of it that it does not have: the value stays
/// as it is. Seen once, not once for each write that the thread could be parked at.
#[test]
fn a_deadlock_at_an_object_that_keeps_its_value_is_one() {
    let condition = |function| vec![Instruction::object(22, function)];
    let waiter = condition(ObjectFunction::ConditionAwait { slot: 0 });
    let leaver = condition(ObjectFunction::ConditionLeave { slot: 1 });
    let program = Program::of_workers(vec![waiter, leaver]);
    compare(&program);
    assert_eq!(explore(&program, Axioms::Sc).0.stuck.len(), 1);
}
