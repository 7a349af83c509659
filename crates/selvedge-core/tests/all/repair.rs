//! The changes that forbid a bug of weak memory: the smallest one, and one that really removes the
//! bug.

use selvedge_core::MemoryOrder::{self, Acquire, Relaxed, Release, SeqCst};
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::repair::{Change, Effect, Repair, Way, repair};
use selvedge_core::trust::{self, Bug, NoObserver, Settings};
use selvedge_core::{Function, Location, Machine, Op, Pending, Site, SpinLoops, ThreadId};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine, random_litmus, with_random_orders};

use crate::common::{dekker, message_passing};

fn first_bug<C: Model>(machine: &mut impl SpinLoops) -> Option<Bug> {
    let report = trust::search::<C, _>(machine, Settings::default(), &mut NoObserver);
    report.bugs.into_iter().next()
}

/// The advice about the first bug under `C`.
fn advice<C: Model>(program: &Program) -> Repair {
    let mut machine = ScriptMachine::new(program.clone());
    let bug = first_bug::<C>(&mut machine).expect("a bug");
    repair::<C, _>(&mut machine, &bug, &|_| true, &mut || true)
}

/// The changes that remove the first bug.
fn changes<C: Model>(program: &Program) -> Vec<Change> {
    match advice::<C>(program) {
        Repair::Changes {
            changes,
            effect: Effect::Removes { others: false, .. },
        } => changes,
        other => panic!("{other:?}"),
    }
}

fn ways(changes: &[Change]) -> Vec<Way> {
    changes.iter().map(|change| change.way).collect()
}

#[test]
fn a_relaxed_flag_needs_release_and_acquire() {
    let release = Way::Order(Release);
    let acquire = Way::Order(Acquire);
    let both = changes::<Rc11>(&message_passing(Relaxed, Relaxed));
    assert_eq!(ways(&both), [release, acquire]);
    assert!(matches!(
        both[0].op,
        Op::Store {
            at: Location(1),
            ..
        }
    ));
    assert!(matches!(
        both[1].op,
        Op::Load {
            at: Location(1),
            ..
        }
    ));
    let one = changes::<Rc11>(&message_passing(Release, Relaxed));
    assert_eq!(ways(&one), [acquire]);
    let other = changes::<Rc11>(&message_passing(Relaxed, SeqCst));
    assert_eq!(ways(&other), [release]);
}

#[test]
fn store_buffering_needs_two_fences_or_under_tso_two_strong_stores() {
    let fences = [Way::Fence(SeqCst); 2];
    assert_eq!(ways(&changes::<Rc11>(&dekker(Relaxed))), fences);
    let stores = [Way::Order(SeqCst); 2];
    assert_eq!(ways(&changes::<TotalStoreOrder>(&dekker(Release))), stores);
}

#[test]
fn release_acquire_ignores_what_is_written() {
    assert_eq!(advice::<ReleaseAcquire>(&dekker(SeqCst)), Repair::Unknown);
}

#[test]
fn a_bug_that_sequential_consistency_has_as_well_is_not_for_orders_to_remove() {
    let worker = || {
        let mut code = vec![I::with(Relaxed), I::Load(0, 0), I::with(Relaxed)];
        code.extend([I::StoreRegister(0, 0), I::AssertNot(0, 0)]);
        code
    };
    let program = Program::of_workers(vec![worker(), worker()]);
    assert_eq!(advice::<Rc11>(&program), Repair::Sequential);
}

#[test]
fn a_bug_that_only_other_executions_have_under_sequential_consistency_is_found_there() {
    // The first bug found is a stale read after the flag; the assertion also fails without it.
    let mut program = message_passing(Relaxed, Relaxed);
    program.threads[2][2] = I::JumpIf(0, 7, 6);
    assert_eq!(advice::<Rc11>(&program), Repair::Sequential);
}

#[test]
fn without_any_budget_nothing_is_claimed() {
    let mut machine = ScriptMachine::new(message_passing(Relaxed, Relaxed));
    let bug = first_bug::<Rc11>(&mut machine).expect("a bug");
    let none = repair::<Rc11, _>(&mut machine, &bug, &|_| true, &mut || false);
    assert_eq!(none, Repair::Unknown);
    let mut left = 40;
    let mut few = || {
        left -= 1;
        left > 0
    };
    let some = repair::<Rc11, _>(&mut machine, &bug, &|_| true, &mut few);
    assert!(
        !matches!(
            some,
            Repair::Changes {
                effect: Effect::Removes { .. },
                ..
            }
        ) || left > 0,
        "{some:?}"
    );
}

/// A machine with some orders raised, written independently of the one under test.
struct Raised<'a> {
    machine: ScriptMachine,
    raise: &'a [(Site, MemoryOrder)],
}

impl Machine for Raised<'_> {
    fn pending(&self, thread: ThreadId) -> Pending {
        let Pending::Op(mut op) = self.machine.pending(thread) else {
            return self.machine.pending(thread);
        };
        let site = self.machine.site(thread);
        if let Some(&(_, to)) = self.raise.iter().find(|(at, _)| *at == site) {
            match &mut op {
                Op::Load { order, .. } | Op::Store { order, .. } | Op::Fence { order } => {
                    *order = to;
                }
                Op::Update { order, failure, .. } => (*order, *failure) = (to, to),
                _ => {}
            }
        }
        Pending::Op(op)
    }

    selvedge_core::forward_machine!(machine: reset, around, initial, resume);
}

impl SpinLoops for Raised<'_> {
    selvedge_core::forward_machine!(machine: quiet, misjudged);
}

fn fails_with(program: &Program, raise: &[(Site, MemoryOrder)]) -> bool {
    let machine = ScriptMachine::new(program.clone());
    first_bug::<Rc11>(&mut Raised { machine, raise }).is_some()
}

/// The places of `program` that have an order.
fn places(program: &Program) -> Vec<Site> {
    let mut places = Vec::new();
    for (thread, code) in program.threads.iter().enumerate() {
        for (at, instruction) in code.iter().enumerate() {
            let atomic = match instruction {
                I::Load(..) | I::Store(..) | I::StoreRegister(..) | I::Fence(..) => true,
                I::Update(.., function) => matches!(function, Function::Memory { .. }),
                _ => false,
            };
            // The site of an access is that of its order.
            let ordered = at > 0 && matches!(code[at - 1], I::With(MemoryOrder::Plain, _));
            if atomic && !ordered {
                places.push(Site(((thread as u64) << 32) | at as u64));
            }
        }
    }
    places
}

/// Under random programs with one assertion: a single raised order is found iff there is one, sets
/// that are said to remove the bug do, and sets of raised orders are not larger than need be.
#[test]
fn the_smallest_change_agrees_with_trying_them_all() {
    let (mut single, mut larger, mut sequential) = (0, 0, 0);
    for seed in 0..2500 {
        let mut program = with_random_orders(&random_litmus(seed), seed);
        let thread = 1 + seed as usize % (program.threads.len() - 1);
        let code = &mut program.threads[thread];
        code.push(I::JumpIf(0, 0, code.len() + 2));
        code.push(I::AssertNot(1, 0));
        let mut machine = ScriptMachine::new(program.clone());
        let Some(bug) = first_bug::<Rc11>(&mut machine) else {
            continue;
        };
        let under_sc = first_bug::<SequentialConsistency>(&mut machine).is_some();
        let found = repair::<Rc11, _>(&mut machine, &bug, &|_| true, &mut || true);
        if under_sc {
            let expected = matches!(found, Repair::Sequential | Repair::Strong);
            assert!(expected, "seed {seed}: {program:?} {found:?}");
            sequential += 1;
            continue;
        }
        let places = places(&program);
        let one = places
            .iter()
            .find(|&&place| !fails_with(&program, &[(place, SeqCst)]));
        match &found {
            Repair::Changes { changes, effect } => {
                assert!(matches!(effect, Effect::Removes { .. }), "seed {seed}");
                let orders = |change: &Change| match change.way {
                    Way::Order(order) => Some((change.site, order)),
                    Way::Fence(_) => None,
                };
                let raise: Option<Vec<_>> = changes.iter().map(orders).collect();
                let by_one_order = changes.len() == 1 && raise.is_some();
                assert_eq!(
                    one.is_some(),
                    by_one_order,
                    "seed {seed}: {program:?} {found:?}"
                );
                match by_one_order {
                    true => single += 1,
                    false => larger += 1,
                }
                let none_left = |left: usize| {
                    let fewer = raise.iter().flatten().copied().enumerate();
                    let fewer = fewer.filter(|&(n, _)| n != left).map(|(_, change)| change);
                    fails_with(&program, &fewer.collect::<Vec<_>>())
                };
                if raise.is_some() {
                    assert!((0..changes.len()).all(none_left), "seed {seed}: {found:?}");
                }
            }
            // Plain accesses have no order to raise.
            other => {
                let all: Vec<_> = places.iter().map(|&place| (place, SeqCst)).collect();
                assert!(fails_with(&program, &all), "seed {seed}: {other:?}");
            }
        }
    }
    assert!(
        single > 3 && larger > 3 && sequential > 20,
        "{single} by one order, {larger} by more, {sequential} sequential"
    );
}
