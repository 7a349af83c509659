//! Random descents against the exact number of executions.

use std::ops::ControlFlow;

use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::trust::{self, Ending, NoObserver, Settings};
use selvedge_testkit::{
    Instruction, Program, ScriptMachine, random_litmus, random_program, with_random_orders,
};

use crate::common::{FLAVOURS, number};

/// How many programs of each flavour.
const PROGRAMS: u64 = 30;
/// How many descents for each of them.
const DESCENTS: u64 = 100;

/// The exact number of executions.
fn exact<C: Model>(program: &Program, preemptions: Option<u32>) -> f64 {
    let settings = Settings {
        keep_going: true,
        preemptions,
    };
    let mut machine = ScriptMachine::new(program.clone());
    let report = trust::search::<C, _>(&mut machine, settings, &mut NoObserver);
    assert_eq!(report.ending, Ending::Complete);
    report.counts.executions as f64
}

/// The mean of many descents and the variance of that mean.
fn estimate<C: Model>(program: &Program, preemptions: Option<u32>, seed: u64) -> (f64, f64) {
    let mut machine = ScriptMachine::new(program.clone());
    let (mut sum, mut squares, mut left) = (0.0, 0.0, DESCENTS);
    let each = &mut |descent: &trust::Descent| {
        sum += descent.executions;
        squares += descent.executions * descent.executions;
        left -= 1;
        match left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let report = trust::descend::<C, _>(&mut machine, preemptions, seed, &mut NoObserver, each);
    assert_eq!(report.ending, Ending::Stopped, "{program:?}");
    let number = DESCENTS as f64;
    let mean = sum / number;
    (mean, (squares / number - mean * mean).max(0.0) / number)
}

/// Estimates are right on average: over many programs, the sum of `estimate / exact - 1` stays within four standard
/// deviations of zero, and the same for each kind of programs.
fn compare_many<C: Model>() {
    let programs = number("SEEDS").unwrap_or(PROGRAMS);
    let flavours = FLAVOURS.map(Some).into_iter().chain([None]);
    let mut all = 0;
    for (flavour, bounded) in flavours.flat_map(|f| [(f, false), (f, true)]) {
        let (mut error, mut variance, mut compared) = (0.0, 0.0, 0);
        for seed in 0..programs {
            let program = flavour.map_or_else(
                || random_litmus(seed),
                |flavour| random_program(seed, flavour),
            );
            let program = with_random_orders(&program, seed);
            let preemptions = bounded.then_some((seed % 3) as u32);
            let exact = exact::<C>(&program, preemptions);
            let (mean, spread) = estimate::<C>(&program, preemptions, seed);
            if exact == 0.0 {
                assert_eq!(mean, 0.0, "{flavour:?} {seed}");
                continue;
            }
            error += mean / exact - 1.0;
            variance += spread / (exact * exact);
            compared += 1;
        }
        let deviation = error / variance.sqrt().max(1e-9);
        println!(
            "{flavour:?} bounded: {bounded}: {compared} programs, bias {:+.4}, {deviation:+.2} deviations",
            error / f64::from(compared)
        );
        assert!(deviation.abs() < 4.0, "{flavour:?} bounded: {bounded}");
        all += u64::from(compared as u32);
    }
    assert!(all > 9 * programs, "too few programs: {all}");
}

#[test]
fn descents_under_sc_are_right_on_average() {
    compare_many::<SequentialConsistency>();
}

#[test]
fn descents_under_tso_are_right_on_average() {
    compare_many::<TotalStoreOrder>();
}

#[test]
fn descents_under_ra_are_right_on_average() {
    compare_many::<ReleaseAcquire>();
}

#[test]
fn descents_under_rc11_are_right_on_average() {
    compare_many::<Rc11>();
}

/// How much follows a graph of such a program depends only on what its stratum says.
#[test]
fn orders_of_critical_sections_are_estimated_exactly() {
    let sections = |thread| {
        let section = [Instruction::lock(10, thread), Instruction::unlock(10)];
        section.repeat(6)
    };
    let program = Program::of_workers(vec![sections(1), sections(2)]);
    let mut machine = ScriptMachine::new(program);
    let mut estimates = Vec::new();
    let each = &mut |descent: &trust::Descent| {
        estimates.push(descent.executions);
        match estimates.len() {
            20 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let observer = &mut NoObserver;
    trust::descend::<SequentialConsistency, _>(&mut machine, None, 0, observer, each);
    // Twelve sections, six of each thread. The first descents tell too few graphs apart.
    assert_eq!(estimates[10..], [924.0; 10]);
}
