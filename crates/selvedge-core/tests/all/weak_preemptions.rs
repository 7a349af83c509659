//! The preemption bound under weak memory models: what lies within it is found, each class once,
//! and nothing else is counted.

use selvedge_core::MemoryOrder::Relaxed;
use selvedge_testkit::{
    Axioms, Flavour, Instruction as I, Preemptions, Program, ScriptMachine, allowed_preemptions,
    random_cycle, random_litmus, random_program, with_random_orders,
};

use crate::common::{Bounded, Tally, explore_within};

/// How many programs of each sort: 2,500 in all.
const CYCLES: u64 = 300;
const LITMUS: u64 = 200;
const FLAVOURS: u64 = 60;
/// Programs with more prefixes than this are left out.
const LIMIT: usize = 700;

fn numbers(program: &Program, model: Axioms) -> Option<Preemptions> {
    allowed_preemptions(&mut ScriptMachine::new(program.clone()), model, LIMIT)
}

/// Compares for every bound up to the largest that matters; returns that.
fn compare(program: &Program, model: Axioms) -> Option<u32> {
    let numbers = numbers(program, model)?;
    let most = numbers.largest();
    for bound in 0..=most {
        let Bounded {
            within,
            twice,
            bugs,
            ..
        } = explore_within(program, model, bound);
        let place = format!("{model:?} within {bound} of {most}\n{program:?}");
        assert!(!twice, "an execution twice: {place}");
        let wanted = numbers.within(bound);
        let lost = wanted.difference(&within).next();
        let invented = within.difference(&wanted).next();
        assert!(
            lost.is_none() && invented.is_none(),
            "of {} lost {lost:?} or invented {invented:?}: {place}",
            wanted.len()
        );
        let fails = numbers.fails.is_some_and(|number| number <= bound);
        let found = bugs.iter().any(|bug| bug.waiting.is_empty());
        assert_eq!(found, fails, "failures: {place}");
    }
    Some(most)
}

fn compare_many(model: Axioms) {
    let mut tally = Tally::default();
    let mut compare_some = |programs: u64, program: &dyn Fn(u64) -> Program| {
        for seed in 0..programs {
            let program = with_random_orders(&program(seed), seed);
            tally.add(compare(&program, model).map(|most| most as usize));
        }
    };
    compare_some(CYCLES, &random_cycle);
    compare_some(LITMUS, &random_litmus);
    for flavour in Flavour::ALL {
        compare_some(FLAVOURS, &|seed| random_program(seed, flavour));
    }
    let Tally { compared, most, .. } = tally;
    println!("{model:?}: {compared} programs, bounds up to {most}");
    assert!(compared > 670, "too many programs were skipped");
}

#[test]
fn bounds_lose_nothing_under_release_acquire() {
    compare_many(Axioms::Ra);
}

#[test]
fn bounds_lose_nothing_under_rc11() {
    compare_many(Axioms::Rc11);
}

#[test]
fn bounds_lose_nothing_under_total_store_order() {
    compare_many(Axioms::Tso);
}

fn relaxed(code: &[I]) -> Vec<I> {
    let with = |instruction: &I| [I::With(Relaxed, Relaxed), *instruction];
    code.iter().flat_map(with).collect()
}

/// A slack of all threads minus two, which is enough under sequential consistency, loses one of its
/// executions at bound 0: there the second addition of main sees the second one of the worker,
/// which did not see what main had written, and on the way there it sees the first one, which takes
/// a preemption.
#[test]
fn under_weak_models_main_counts_for_the_slack() {
    let add = || I::fetch_add(0, 1, 1);
    let worker = relaxed(&[add(), I::Load(1, 0), add()]);
    let mut program = Program::of_workers(vec![worker]);
    let main = relaxed(&[I::Store(0, 1), add(), add()]);
    program.threads[0].splice(1..1, main);
    assert_eq!(compare(&program, Axioms::Rc11), Some(3));
}

/// `x = 1; a = y; b = y | y = 1; c = x` with `a = 0`, `b = 1`, `c = 0` has no order, and the part
/// without `c` needs a preemption.
#[test]
fn an_execution_without_an_order_has_the_number_of_its_dearest_part() {
    let program = Program::of_workers(vec![
        relaxed(&[I::Store(0, 1), I::Load(0, 1), I::Load(1, 1)]),
        relaxed(&[I::Store(1, 1), I::Load(0, 0)]),
    ]);
    for model in [Axioms::Tso, Axioms::Ra, Axioms::Rc11] {
        assert_eq!(compare(&program, model), Some(1), "{model:?}");
        let within = |bound| explore_within(&program, model, bound).within.len();
        assert_eq!((within(0), within(1)), (3, 6), "{model:?}");
    }
}
