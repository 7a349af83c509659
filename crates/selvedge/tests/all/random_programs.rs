//! Random programs, run as closures of the library, against brute force.

use std::collections::BTreeMap;

use selvedge::explore::raw::{self, Object};
use selvedge::explore::{assume, choose};
use selvedge::model::{MemoryModel, Verdict};
use selvedge::sync::Arc;
use selvedge::thread::{self, JoinHandle};
use selvedge_core::{Function, MemoryOrder, Value};
use selvedge_testkit::{
    Axioms, Flavour, Instruction, Program, ScriptMachine, allowed, object_order, random_cycle,
    random_litmus, random_program, with_random_orders,
};

use crate::common::builder;

/// Programs with more prefixes than this are left out.
const LIMIT: usize = 2_000;

struct Shared {
    program: Program,
    variables: BTreeMap<u32, (Object, bool)>,
}

impl Shared {
    fn new(program: &Program) -> Shared {
        let mut variables = BTreeMap::new();
        for instruction in program.threads.iter().flatten() {
            let (variable, object) = match *instruction {
                Instruction::Load(_, variable)
                | Instruction::Store(variable, _)
                | Instruction::StoreRegister(variable, _) => (variable, false),
                Instruction::Update(_, variable, function) => {
                    (variable, matches!(function, Function::Object(_)))
                }
                _ => continue,
            };
            let initial = program.initial.iter().find(|known| known.0 == variable);
            let known = variables
                .entry(variable)
                .or_insert_with(|| (Object::new(initial.map_or(0, |known| known.1)), false));
            known.1 |= object;
        }
        Shared {
            program: program.clone(),
            variables,
        }
    }
}

/// Interprets the code of one thread.
fn run(shared: &Arc<Shared>, thread: usize) {
    let code = &shared.program.threads[thread];
    let mut registers: [Value; 4] = [0; 4];
    let mut threads: [Option<JoinHandle<()>>; 8] = [const { None }; 8];
    let mut orders = (MemoryOrder::SeqCst, MemoryOrder::SeqCst);
    let mut at = 0;
    while let Some(&instruction) = code.get(at) {
        at += 1;
        let (order, failure) = orders;
        if !matches!(instruction, Instruction::With(..)) {
            orders = (MemoryOrder::SeqCst, MemoryOrder::SeqCst);
        }
        match instruction {
            Instruction::Load(register, variable) => {
                // The value of the register is about to be overwritten.
                registers[register] = 0;
                registers[register] = shared.variables[&variable].0.load(order);
            }
            Instruction::Store(variable, value) => {
                let (object, is_object) = &shared.variables[&variable];
                let order = if *is_object {
                    MemoryOrder::Release
                } else {
                    order
                };
                object.store(value, order);
            }
            Instruction::StoreRegister(variable, register) => {
                let (object, is_object) = &shared.variables[&variable];
                let order = if *is_object {
                    MemoryOrder::Release
                } else {
                    order
                };
                object.store(registers[register], order);
            }
            Instruction::Update(register, variable, function) => {
                let (order, failure) = match function {
                    Function::Object(function) => (object_order(function), MemoryOrder::Relaxed),
                    Function::Memory { .. } => (order, failure),
                };
                registers[register] = 0;
                registers[register] = shared.variables[&variable]
                    .0
                    .update(function, order, failure);
            }
            Instruction::With(order, failure) => orders = (order, failure),
            Instruction::Fence(order) => raw::fence(order),
            Instruction::Create(child) => {
                let shared = Arc::clone(shared);
                threads[child as usize] = Some(thread::spawn(move || run(&shared, child as usize)));
            }
            Instruction::Join(child) => {
                if let Some(thread) = threads[child as usize].take() {
                    thread.join().unwrap();
                }
            }
            Instruction::Choose(register, alternatives) => {
                registers[register] = choose(alternatives).into();
            }
            Instruction::JumpIf(register, value, target) => {
                if registers[register] == value {
                    at = target;
                }
            }
            Instruction::AssertNot(register, value) => assert_ne!(registers[register], value),
            Instruction::Assume(register, value) => assume(registers[register] == value),
        }
    }
}

/// The number of executions, if the program is not too large.
fn compare(program: &Program, model: MemoryModel, axioms: Axioms) -> Option<usize> {
    let expected = allowed(&mut ScriptMachine::new(program.clone()), axioms, LIMIT)?;
    let code = program.clone();
    let report = builder(model).explore(move || run(&Arc::new(Shared::new(&code)), 0));
    if expected.fails || !expected.stuck.is_empty() {
        assert!(
            matches!(report.verdict, Verdict::Failed(_)),
            "{model:?}: {:?}\n{program:?}",
            report.verdict
        );
        return Some(0);
    }
    assert_eq!(report.verdict, Verdict::Verified, "{model:?}\n{program:?}");
    // Leftovers of a loop in unused stack slots may hide that the loop came back to its first
    // state: then it goes round once more, and there are more executions.
    let jumps_back = |(at, instruction): (usize, &Instruction)| matches!(*instruction, Instruction::JumpIf(_, _, target) if target <= at);
    let threads = &mut program.threads.iter();
    let loops = threads.any(|code| code.iter().enumerate().any(jumps_back));
    let (executions, expected) = (report.executions as usize, expected.complete.len());
    assert!(
        executions == expected || (loops && executions > expected),
        "{model:?}: {executions} executions, not {expected}\n{program:?}"
    );
    Some(expected)
}

fn compare_many(model: MemoryModel, axioms: Axioms) {
    let mut compared = [0; 2];
    let mut all = |program: Program, seed: u64| {
        if let Some(count) = compare(&with_random_orders(&program, seed), model, axioms) {
            compared[0] += 1;
            compared[1] += count;
        }
    };
    for seed in 0..50 {
        all(random_cycle(seed), seed);
        all(random_litmus(seed), seed);
    }
    for flavour in Flavour::ALL {
        for seed in 0..20 {
            all(random_program(seed, flavour), seed);
        }
    }
    println!(
        "{model:?}: {} programs, {} executions",
        compared[0], compared[1]
    );
    assert!(compared[0] > 150, "too many programs were skipped");
}

#[test]
fn sequentially_consistent_programs_have_the_executions_of_brute_force() {
    compare_many(MemoryModel::Sc, Axioms::Sc);
}

#[test]
fn programs_under_tso_have_the_executions_of_brute_force() {
    compare_many(MemoryModel::Tso, Axioms::Tso);
}

#[test]
fn release_acquire_programs_have_the_executions_of_brute_force() {
    compare_many(MemoryModel::Ra, Axioms::Ra);
}

#[test]
fn programs_under_rc11_have_the_executions_of_brute_force() {
    compare_many(MemoryModel::Rc11, Axioms::Rc11);
}
