//! Some models allow whatever others allow.

use std::collections::HashSet;

use selvedge_core::MemoryOrder;
use selvedge_testkit::Axioms::{self, Ra, Rc11, Sc, Tso};
use selvedge_testkit::{Execution, Instruction, Program, random_litmus, with_random_orders};

use crate::common::explore;

const PROGRAMS: u64 = 400;

fn executions(program: &Program, model: Axioms) -> HashSet<Execution> {
    explore(program, model).0.complete
}

/// Compares two models on random programs; `adapt` makes the programs such that the theory holds. There
/// must be programs with more executions under the weaker model.
fn includes(weaker: Axioms, stronger: Axioms, adapt: impl Fn(&mut Instruction)) {
    let mut more = 0;
    for seed in 0..PROGRAMS {
        let mut program = with_random_orders(&random_litmus(seed), seed);
        program.threads.iter_mut().flatten().for_each(&adapt);
        let weak = executions(&program, weaker);
        let strong = executions(&program, stronger);
        let missing = strong.difference(&weak).next();
        assert!(missing.is_none(), "{program:?}\n{missing:?}");
        more += u32::from(weak.len() > strong.len());
    }
    assert!(more > 10, "only {more} programs tell the models apart");
}

/// Makes sequentially consistent accesses and fences acquires and releases.
fn without_seq_cst(instruction: &mut Instruction) {
    let weaken = |order: &mut MemoryOrder| {
        if *order == MemoryOrder::SeqCst {
            *order = MemoryOrder::AcqRel;
        }
    };
    match instruction {
        Instruction::With(order, failure) => {
            weaken(order);
            weaken(failure);
        }
        Instruction::Fence(order) => weaken(order),
        _ => {}
    }
}

#[test]
fn tso_allows_what_sc_allows() {
    includes(Tso, Sc, without_seq_cst);
}

#[test]
fn release_acquire_allows_what_tso_allows() {
    includes(Ra, Tso, |_| {});
}

#[test]
fn rc11_allows_what_sc_allows() {
    includes(Rc11, Sc, |_| {});
}

#[test]
fn rc11_without_seq_cst_allows_what_release_acquire_allows() {
    includes(Rc11, Ra, without_seq_cst);
}

/// Compilers translate the orders of C to instructions of x86.
#[test]
fn rc11_allows_what_tso_allows() {
    includes(Rc11, Tso, |_| {});
}

/// Where every access is SC, RC11 is SC; fences add nothing.
#[test]
fn rc11_with_seq_cst_only_is_sc() {
    for seed in 0..PROGRAMS {
        let program = random_litmus(seed);
        assert_eq!(
            executions(&program, Rc11),
            executions(&program, Sc),
            "{program:?}"
        );
    }
}
