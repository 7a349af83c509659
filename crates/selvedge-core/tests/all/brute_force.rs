//! The optimal search against brute force on random programs.

use selvedge_testkit::{Axioms, Flavour, Program, ScriptMachine, brute_force, random_program};

use crate::common::{Tally, explore};

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
    for seed in 0..PROGRAMS {
        tally.add(compare(&random_program(seed, flavour)));
    }
    let Tally { compared, all, .. } = tally;
    println!("{flavour:?}: {compared} programs, {all} executions");
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
