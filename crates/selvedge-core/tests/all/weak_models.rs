//! The optimal search under each memory model against the model's axioms, on random programs.

use selvedge_testkit::{
    Axioms, Flavour, Program, ScriptMachine, allowed, random_cycle, random_litmus, random_program,
    with_random_orders,
};

use crate::common::{Tally, explore};

/// How many programs of each sort: 2,000 for each model.
const CYCLES: u64 = 800;
const LITMUS: u64 = 400;
const FLAVOURS: u64 = 160;
/// Programs with more prefixes than this are left out.
const LIMIT: usize = 1_000;

/// The number of executions, if the program is not too large.
fn compare(program: &Program, model: Axioms) -> Option<usize> {
    let expected = allowed(&mut ScriptMachine::new(program.clone()), model, LIMIT)?;
    let (seen, report) = explore(program, model);
    seen.assert_is(&expected, &report, &(model, program));
    Some(expected.complete.len())
}

fn compare_many(model: Axioms) {
    let mut tally = Tally::default();
    let mut compare_some = |programs: u64, program: &dyn Fn(u64) -> Program| {
        let wanted = tally.compared + programs;
        for seed in 0.. {
            if tally.compared == wanted {
                return;
            }
            tally.add(compare(&with_random_orders(&program(seed), seed), model));
        }
    };
    compare_some(CYCLES, &random_cycle);
    compare_some(LITMUS, &random_litmus);
    for flavour in Flavour::ALL {
        compare_some(FLAVOURS, &|seed| random_program(seed, flavour));
    }
    let Tally {
        compared,
        skipped,
        all,
        ..
    } = tally;
    println!("{model:?}: {compared} programs, {all} executions, {skipped} too large");
    assert!(skipped * 3 < compared, "too many programs were skipped");
}

#[test]
fn release_acquire_has_the_executions_of_its_axioms() {
    compare_many(Axioms::Ra);
}

#[test]
fn sequential_consistency_has_the_executions_of_its_axioms() {
    compare_many(Axioms::Sc);
}

#[test]
fn rc11_has_the_executions_of_its_axioms() {
    compare_many(Axioms::Rc11);
}

#[test]
fn total_store_order_has_the_executions_of_its_axioms() {
    compare_many(Axioms::Tso);
}
