//! Locks and semaphores, and failures.

use selvedge_core::objects::ObjectFunction;
use selvedge_core::report::{Ending, NoObserver};
use selvedge_core::tracer::{self, SaturatedRa, SaturatedSc};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

use super::{X, Y, counts};

#[test]
fn locks_taken_in_opposite_order_have_two_classes_and_a_deadlock() {
    let worker = |thread, first, second| {
        vec![
            I::lock(first, thread),
            I::lock(second, thread),
            I::unlock(second),
            I::unlock(first),
        ]
    };
    let program = Program::of_workers(vec![worker(1, 10, 11), worker(2, 11, 10)]);
    let found = counts::<SaturatedRa>(program.clone());
    assert_eq!((found.executions, found.blocked), (2, 1));
    let found = counts::<SaturatedSc>(program);
    assert_eq!((found.executions, found.blocked), (2, 1));
}

#[test]
fn semaphores_come_in_every_order_and_never_block() {
    let worker = vec![
        I::object(21, ObjectFunction::SemaphoreWait),
        I::object(21, ObjectFunction::SemaphorePost),
    ];
    for (threads, orders) in [(2, 2), (3, 6), (4, 24)] {
        let mut program = Program::of_workers(vec![worker.clone(); threads]);
        program.initial = vec![(21, 1)];
        let found = counts::<SaturatedRa>(program.clone());
        assert_eq!((found.executions, found.blocked), (orders, 0));
        let found = counts::<SaturatedSc>(program);
        assert_eq!((found.executions, found.blocked), (orders, 0));
    }
}

/// Both threads may read 0 under release-acquire, which no interleaving explains.
#[test]
fn a_weak_failure_is_found_and_repeated() {
    let worker = |mine, theirs| {
        vec![
            I::Store(mine, 1),
            I::Load(0, theirs),
            I::Store(theirs + 5, 1),
            I::StoreRegister(theirs + 7, 0),
        ]
    };
    let mut program = Program::of_workers(vec![worker(X, Y), worker(Y, X)]);
    program.threads[0].extend([
        I::Load(0, Y + 7),
        I::JumpIf(0, 1, 8),
        I::Load(1, X + 7),
        I::AssertNot(1, 0),
    ]);
    let found = |keep_going| {
        let mut machine = ScriptMachine::new(program.clone());
        tracer::search::<SaturatedRa, _>(&mut machine, keep_going, &mut NoObserver)
    };
    let report = found(true);
    assert_eq!((report.counts.executions, report.bugs.len()), (4, 1));
    assert_eq!(found(false).ending, Ending::FirstBug);
    assert!(counts::<SaturatedSc>(program.clone()).executions == 3);
}
