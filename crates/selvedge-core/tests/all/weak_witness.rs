//! Counterexamples under weak memory: they say which newer writes were not seen, and no more of them
//! than there have to be.

use selvedge_core::MemoryOrder::{Acquire, Relaxed, Release, SeqCst};
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::trust::{self, Bug, NoObserver, Settings};
use selvedge_core::witness::{Origin, Step};
use selvedge_core::{Machine, Op, Pending, Stop};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{
    Flavour, Program, ScriptMachine, random_litmus, random_program, with_random_orders,
};

use crate::common::{dekker, message_passing};

fn first_bug<C: Model>(program: &Program) -> Option<Bug> {
    let mut machine = ScriptMachine::new(program.clone());
    let report = trust::search::<C, _>(&mut machine, Settings::default(), &mut NoObserver);
    report.bugs.into_iter().next()
}

/// The steps that pass newer writes by.
fn odd(bug: &Bug) -> Vec<&Step> {
    let steps = bug.witness.steps.iter();
    steps.filter(|step| !step.newer.is_empty()).collect()
}

#[test]
fn a_stale_read_names_the_write_that_it_did_not_see() {
    let bug = first_bug::<Rc11>(&message_passing(Relaxed, Relaxed)).expect("a relaxed flag");
    let odd = odd(&bug);
    let [stale] = odd[..] else {
        panic!("one stale read: {bug:?}");
    };
    assert_eq!((stale.read, stale.origin), (Some(0), Some(Origin::Initial)));
    let unseen = &bug.witness.steps[stale.newer[0] as usize];
    assert_eq!(
        (unseen.op.location(), unseen.wrote),
        (stale.op.location(), Some(1))
    );
    // Main creates both, one writes, the other reads: main is never come back to.
    assert_eq!(bug.witness.switches, 2);
}

#[test]
fn message_passing_by_release_and_acquire_has_no_bug() {
    assert!(first_bug::<Rc11>(&message_passing(Release, Acquire)).is_none());
    assert!(first_bug::<Rc11>(&message_passing(Release, Relaxed)).is_some());
    assert!(first_bug::<ReleaseAcquire>(&message_passing(Relaxed, Relaxed)).is_none());
}

#[test]
fn store_buffering_takes_one_stale_read() {
    for bug in [
        first_bug::<ReleaseAcquire>(&dekker(SeqCst)),
        first_bug::<TotalStoreOrder>(&dekker(Release)),
    ] {
        let bug = bug.expect("both threads enter");
        assert_eq!(odd(&bug).len(), 1, "{bug:?}");
    }
    assert!(first_bug::<Rc11>(&dekker(SeqCst)).is_none());
    assert!(first_bug::<TotalStoreOrder>(&dekker(SeqCst)).is_none());
}

#[test]
fn a_write_that_goes_behind_a_newer_one_says_so() {
    let worker = |first, second| vec![I::Store(first, 1), I::Store(second, 2)];
    let mut program = Program::of_workers(vec![worker(0, 1), worker(1, 0)]);
    let at = program.threads[0].len();
    program.threads[0].extend([
        I::Load(0, 0),
        I::JumpIf(0, 2, at + 4),
        I::Load(1, 1),
        I::AssertNot(1, 1),
    ]);
    let bug = first_bug::<ReleaseAcquire>(&program).expect("both first writes stay");
    let odd = odd(&bug);
    assert_eq!(odd.len(), 1, "{bug:?}");
    assert!(matches!(odd[0].op, Op::Store { .. }));
}

/// The steps, with what each of them was told, lead to the failure again; and where no newer
/// write is passed by, each read sees the last write before it.
fn check<C: Model>(program: &Program) -> Option<usize> {
    let bug = first_bug::<C>(program)?;
    let mut machine = ScriptMachine::new(program.clone());
    machine.reset();
    for step in &bug.witness.steps {
        assert_eq!(machine.pending(step.thread), Pending::Op(step.op));
        machine.resume(step.thread, step.outcome(), &step.clock);
    }
    if bug.waiting.is_empty() {
        let pending = machine.pending(bug.failure.thread);
        assert_eq!(pending, Pending::Stopped(Stop::Failed), "{bug:?}");
    }
    let steps = &bug.witness.steps;
    if odd(&bug).is_empty() {
        for (index, step) in steps.iter().enumerate() {
            let before = &steps[..index];
            let writes = |s: &Step| s.wrote.is_some() && s.op.location() == step.op.location();
            let last = before.iter().rposition(writes);
            let newest = last.map_or(Origin::Initial, |last| Origin::Step(last as u32));
            assert!(step.origin.is_none_or(|origin| origin == newest), "{bug:?}");
        }
    }
    Some(odd(&bug).len())
}

#[test]
fn schedules_lead_to_the_failure_they_explain() {
    let mut failures = 0;
    for seed in 0..120 {
        for flavour in [Flavour::Memory, Flavour::Deadlocks, Flavour::Loops] {
            let program = with_random_orders(&random_program(seed, flavour), seed);
            for odd in [check::<Rc11>(&program), check::<ReleaseAcquire>(&program)] {
                failures += u32::from(odd.is_some());
            }
        }
    }
    assert!(failures > 60, "{failures} failures");
}

#[test]
fn what_only_weak_memory_can_do_takes_a_step_that_passes_a_newer_write_by() {
    let mut weak = 0;
    for seed in 0..3000 {
        let mut program = with_random_orders(&random_litmus(seed), seed);
        // One thread must not see nothing after having seen something.
        let thread = 1 + seed as usize % (program.threads.len() - 1);
        let code = &mut program.threads[thread];
        code.push(I::JumpIf(0, 0, code.len() + 2));
        code.push(I::AssertNot(1, 0));
        if first_bug::<SequentialConsistency>(&program).is_none()
            && let Some(odd) = check::<Rc11>(&program)
        {
            assert!(odd > 0, "{program:?}");
            weak += 1;
        }
    }
    assert!(weak > 5, "only {weak} programs fail under weak memory only");
}
