//! Numbers of executions that are known from the literature or by hand.

use selvedge_core::model::SequentialConsistency;
use selvedge_core::op::Rmw;
use selvedge_core::trust::{self, Ending, NoObserver, Report, Settings};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Program, ScriptMachine};

use crate::common::{Counting, Fickle};

const ALL_BUGS: Settings = Settings {
    keep_going: true,
    preemptions: None,
};

fn search(program: Program) -> Report {
    let mut machine = ScriptMachine::new(program);
    let report = trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut NoObserver);
    assert_eq!(report.ending, Ending::Complete);
    report
}

#[test]
fn a_search_that_starts_over_too_often_ends_with_an_error() {
    let mut machine = Fickle::new();
    let report = trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut NoObserver);
    machine.assert_never_settled(report);
}

fn executions(workers: Vec<Vec<I>>) -> u64 {
    search(Program::of_workers(workers)).counts.executions
}

/// A plain `x++`: a load and a store of one more. The scripted machine has no arithmetic, so each
/// store has a value of its own; the number of graphs does not depend on values.
fn increment(value: u128) -> [I; 2] {
    [I::Load(0, 0), I::Store(0, value)]
}

#[test]
fn two_threads_with_two_increments_have_34_executions() {
    let worker = |n: u128| [increment(n), increment(n + 1)].concat();
    assert_eq!(executions(vec![worker(1), worker(3)]), 34);
}

#[test]
fn three_threads_with_two_increments_have_7134_executions() {
    let worker = |n: u128| [increment(n), increment(n + 1)].concat();
    assert_eq!(executions(vec![worker(1), worker(3), worker(5)]), 7134);
}

#[test]
fn micro_has_51318_executions() {
    let worker = |n: u128| {
        let read = [I::Load(1, 0)];
        [&increment(n)[..], &increment(n + 1), &read].concat()
    };
    assert_eq!(executions(vec![worker(1), worker(3), worker(5)]), 51318);
}

#[test]
fn fetch_adds_come_in_every_order() {
    for (threads, factorial) in [(2, 2), (3, 6), (4, 24), (5, 120)] {
        let workers = vec![vec![I::fetch_add(0, 0, 1)]; threads];
        assert_eq!(executions(workers), factorial);
    }
}

#[test]
fn three_threads_with_several_fetch_adds_each() {
    assert_eq!(executions(vec![vec![I::fetch_add(0, 0, 1); 2]; 3]), 90);
    assert_eq!(executions(vec![vec![I::fetch_add(0, 0, 1); 3]; 3]), 1680);
}

#[test]
fn three_critical_sections_come_in_six_orders_and_never_block() {
    let worker = |t| vec![I::lock(9, t), I::unlock(9)];
    let report = search(Program::of_workers(vec![worker(1), worker(2), worker(3)]));
    assert_eq!((report.counts.executions, report.counts.blocked), (6, 0));
}

#[test]
fn critical_sections_interleave_in_binomially_many_ways_and_never_block() {
    let worker = |t| [I::lock(9, t), I::unlock(9)].repeat(7);
    let report = search(Program::of_workers(vec![worker(1), worker(2)]));
    assert_eq!((report.counts.executions, report.counts.blocked), (3432, 0));
}

#[test]
fn store_buffering_has_three_executions() {
    let worker = |mine, theirs| vec![I::Store(mine, 1), I::Load(0, theirs)];
    assert_eq!(executions(vec![worker(0, 1), worker(1, 0)]), 3);
}

#[test]
fn independent_reads_of_independent_writes_have_15_executions() {
    let reader = |first, second| vec![I::Load(0, first), I::Load(1, second)];
    let writer = |variable| vec![I::Store(variable, 1)];
    let workers = vec![writer(0), writer(1), reader(0, 1), reader(1, 0)];
    assert_eq!(executions(workers), 15);
}

#[test]
fn two_writes_each_in_opposite_order_have_three_executions() {
    let worker = |first, second| vec![I::Store(first, 1), I::Store(second, 2)];
    assert_eq!(executions(vec![worker(0, 1), worker(1, 0)]), 3);
}

/// A lock of one compare-exchange; failed attempts are pure iterations. The executions are the
/// orders of the acquisitions.
/// Two threads that take a spin lock this many times each: the report of the search.
fn spin_lock(attempt: I, acquisitions: usize) -> Report {
    let mut code = Vec::new();
    for _ in 0..acquisitions {
        let here = code.len();
        code.push(attempt);
        code.push(I::JumpIf(0, 1, here));
        code.push(I::Store(0, 0));
    }
    search(Program::of_workers(vec![code.clone(), code]))
}

#[test]
fn spin_lock_acquisitions_interleave_in_binomially_many_ways() {
    let attempts = [
        I::compare_exchange(0, 0, 0, 1),
        I::memory(0, 0, Rmw::Exchange(1)),
    ];
    for attempt in attempts {
        for (acquisitions, orders) in [(1, 2), (2, 6), (3, 20), (7, 3432)] {
            let counts = spin_lock(attempt, acquisitions).counts;
            assert_eq!(
                counts.executions, orders,
                "{acquisitions} times {attempt:?}"
            );
        }
    }
}

#[test]
fn a_compare_exchange_that_would_succeed_is_not_left_failing() {
    let attempt = I::compare_exchange(0, 0, 0, 1);
    assert_eq!(spin_lock(attempt, 5).counts.blocked, 0);
}

#[test]
fn an_exchange_is_read_and_write() {
    let worker = |value| vec![I::memory(0, 0, Rmw::Exchange(value))];
    assert_eq!(executions(vec![worker(1), worker(2), worker(3)]), 6);
}

#[test]
fn waiting_for_a_lock_costs_no_executions_of_its_own() {
    let critical_section = |lock: &[I], at: usize| {
        let again = lock.iter().map(|&i| match i {
            I::JumpIf(register, value, to) => I::JumpIf(register, value, at + to),
            other => other,
        });
        let unlock = [I::unlock(0)];
        again.chain(unlock).collect::<Vec<_>>()
    };
    let rounds = |lock: Vec<I>| {
        let length = lock.len() + 1;
        let rounds = (0..4).flat_map(|round| critical_section(&lock, round * length));
        rounds.collect::<Vec<_>>()
    };
    let by_mutex = |owner| rounds(vec![I::lock(0, owner)]);
    let by_attempts = || rounds(vec![I::compare_exchange(0, 0, 0, 1), I::JumpIf(0, 1, 0)]);
    for (workers, more) in [
        (vec![by_mutex(1), by_mutex(2)], 0),
        // Each value that makes a thread spin is met once at each place before that is known.
        (vec![by_attempts(), by_attempts()], 8),
    ] {
        let machine = ScriptMachine::new(Program::of_workers(workers));
        let mut machine = Counting { machine, starts: 0 };
        let report =
            trust::search::<SequentialConsistency, _>(&mut machine, ALL_BUGS, &mut NoObserver);
        assert_eq!(report.counts.executions, 70);
        assert!(machine.starts <= 70 + more, "{} starts", machine.starts);
    }
}
