//! Await loops.

use std::collections::HashSet;

use selvedge_core::op::Rmw;
use selvedge_core::report::NoObserver;
use selvedge_core::tracer::{self, SaturatedRa, SaturatedSc};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::{Axioms, Execution, Program, ScriptMachine, allowed};

use crate::common::{Counting, Fickle};

use super::{X, Y, Z, both, class, counts};

/// The number of executions; none is blocked.
fn unblocked(workers: Vec<Vec<I>>) -> u64 {
    for counts in [
        counts::<SaturatedRa>(Program::of_workers(workers.clone())),
        counts::<SaturatedSc>(Program::of_workers(workers.clone())),
    ] {
        assert_eq!(counts.blocked, 0);
    }
    both(workers)
}

/// A critical section between `acquire` and a store of zero.
fn spin_lock(acquire: &[I], sections: usize) -> Vec<I> {
    let mut code = Vec::new();
    for _ in 0..sections {
        let here = code.len();
        for &instruction in acquire {
            code.push(match instruction {
                I::JumpIf(register, value, target) => I::JumpIf(register, value, here + target),
                other => other,
            });
        }
        code.push(I::Store(X, 0));
    }
    code
}

#[test]
fn spin_locks_block_no_execution() {
    let exchange = [I::memory(0, X, Rmw::Exchange(1)), I::JumpIf(0, 1, 0)];
    let compare = [I::compare_exchange(0, X, 0, 1), I::JumpIf(0, 1, 0)];
    for acquire in [exchange, compare] {
        for (threads, sections, orders) in [(2, 3, 20), (3, 1, 6), (3, 2, 90), (4, 1, 24)] {
            let workers = vec![spin_lock(&acquire, sections); threads];
            assert_eq!(unblocked(workers), orders);
        }
    }
}

/// Each skipped await of a spin lock leads to an execution. The other runs discover the loops: the
/// scripted machine has one for each thread and section.
#[test]
fn an_execution_of_a_spin_lock_takes_one_run() {
    let compare = [I::compare_exchange(0, X, 0, 1), I::JumpIf(0, 1, 0)];
    let program = Program::of_workers(vec![spin_lock(&compare, 6); 2]);
    let machine = ScriptMachine::new(program);
    let mut machine = Counting { machine, starts: 0 };
    let report = tracer::search::<SaturatedRa, _>(&mut machine, true, &mut NoObserver);
    assert_eq!(report.counts.executions, 924);
    assert!(machine.starts < 2 * 924, "{} runs", machine.starts);
}

#[test]
fn a_search_that_starts_over_too_often_ends_with_an_error() {
    let mut machine = Fickle::new();
    let report = tracer::search::<SaturatedRa, _>(&mut machine, true, &mut NoObserver);
    machine.assert_never_settled(report);
}

#[test]
fn a_ticket_lock_blocks_no_execution() {
    // The thread with ticket t waits while any smaller one is served.
    let thread = || {
        let mut code = vec![I::fetch_add(0, X, 1)];
        let bodies: Vec<usize> = (0..3).map(|ticket| 4 + ticket * 6).collect();
        for (ticket, &body) in bodies.iter().enumerate() {
            code.push(I::JumpIf(0, ticket as u128, body));
        }
        let end = 4 + 3 * 6;
        for ticket in 0..3_u128 {
            let here = code.len();
            code.push(I::Load(1, Y));
            for smaller in 0..2 {
                let waits = if smaller < ticket { smaller } else { 9 };
                code.push(I::JumpIf(1, waits, here));
            }
            code.push(I::Store(Y, ticket + 1));
            code.push(I::Load(2, Z));
            code.push(I::JumpIf(2, 0, end));
        }
        code
    };
    assert_eq!(unblocked(vec![thread(); 3]), 6);
}

#[test]
fn a_barrier_of_spinning_threads_blocks_no_execution() {
    let thread = || {
        let here = 3;
        vec![
            I::fetch_add(0, X, 1),
            I::JumpIf(0, 2, 5),
            I::Load(2, Z),
            I::Load(1, Y),
            I::JumpIf(1, 0, here),
            I::Store(Y, 1),
        ]
    };
    // The last thread releases the others; they may read the store of any thread that has left.
    assert_eq!(unblocked(vec![thread(); 3]), 18);
}

#[test]
fn flags_handed_from_one_to_the_next_block_no_execution() {
    let wait = |variable, then| vec![I::Load(0, variable), I::JumpIf(0, 0, 0), I::Store(then, 1)];
    assert_eq!(
        unblocked(vec![wait(X, Y), wait(Y, Z), vec![I::Store(X, 1)]]),
        1
    );
}

/// A thread that waits for a value which may be overwritten waits forever in one class.
#[test]
fn waiting_forever_is_found() {
    let waiter = vec![I::Load(0, X), I::JumpIf(0, 0, 0), I::JumpIf(0, 2, 0)];
    let workers = vec![waiter, vec![I::Store(X, 1)], vec![I::Store(X, 2)]];
    for (counts, _) in [
        (
            counts::<SaturatedRa>(Program::of_workers(workers.clone())),
            "ra",
        ),
        (
            counts::<SaturatedSc>(Program::of_workers(workers.clone())),
            "sc",
        ),
    ] {
        assert_eq!((counts.executions, counts.blocked), (1, 1));
    }
}

/// An exchange that reads the value it writes does not compete with the exchange after it: found by
/// seed 30053, where the search was stuck in the same way twice.
#[test]
fn an_exchange_that_stays_in_its_loop_does_not_compete() {
    let swap = |value| I::memory(2, X, Rmw::Exchange(value));
    let program = Program {
        threads: vec![
            vec![I::Create(1), I::Load(0, X), I::Join(1), I::Load(0, X)],
            vec![
                I::Create(2),
                swap(7),
                I::JumpIf(2, 7, 1),
                swap(7),
                I::JumpIf(2, 7, 3),
                I::Load(2, X),
                I::JumpIf(2, 0, 5),
            ],
            vec![
                I::Store(X, 1),
                I::compare_exchange(2, X, 0, 7),
                I::JumpIf(2, 7, 1),
                I::memory(0, X, Rmw::Exchange(2)),
                I::Load(2, X),
                I::JumpIf(2, 0, 4),
            ],
        ],
        initial: Vec::new(),
    };
    for counts in [
        counts::<SaturatedRa>(program.clone()),
        counts::<SaturatedSc>(program),
    ] {
        assert_eq!((counts.executions, counts.blocked), (34, 15));
    }
}

/// Treiber's stack: thread `me` of `threads` pushes the node `me`, whose next one is in variable
/// `10 + me`, and pops one. What is on top is in x. The scripted machine has constants only, so
/// there is a case for each node.
fn treiber(me: u32, threads: u32) -> Vec<I> {
    let nodes = 0..=u128::from(threads);
    let cases = nodes.clone().count();
    let mut code = vec![I::Load(0, X), I::StoreRegister(10 + me, 0)];
    let attempts = code.len() + cases;
    let pop = attempts + 3 * cases;
    let case = |base: usize, size: usize, node: u128| base + size * node as usize;
    code.extend(
        nodes
            .clone()
            .map(|top| I::JumpIf(0, top, case(attempts, 3, top))),
    );
    for top in nodes.clone() {
        code.push(I::compare_exchange(0, X, top, me.into()));
        code.extend([I::JumpIf(0, top, pop), I::JumpIf(3, 0, 1)]);
    }
    code.push(I::Load(0, X));
    let again = code.len();
    let (attempts, size) = (again + cases, 1 + 4 * cases);
    let end = case(attempts, size, nodes.end() - 1) + size;
    code.push(I::JumpIf(0, 0, end));
    let popped = || nodes.clone().skip(1);
    code.extend(popped().map(|top| I::JumpIf(0, top, case(attempts, size, top - 1))));
    for top in popped() {
        code.push(I::Load(1, 10 + top as u32));
        let here = code.len();
        let exchange = |next| case(here + cases, 3, next);
        code.extend(nodes.clone().map(|next| I::JumpIf(1, next, exchange(next))));
        for next in nodes.clone() {
            code.push(I::compare_exchange(0, X, top, next));
            code.extend([I::JumpIf(0, top, end), I::JumpIf(3, 0, again)]);
        }
    }
    code
}

/// An iteration of several reads is performed only if its last read leaves the loop.
#[test]
fn treibers_stack_blocks_no_execution() {
    for (threads, executions) in [(2, 36), (3, 18192)] {
        let workers = (1..=threads).map(|me| treiber(me, threads)).collect();
        let found = counts::<SaturatedRa>(Program::of_workers(workers));
        assert_eq!((found.executions, found.blocked), (executions, 0));
    }
}

fn lock(variable: u32, here: usize) -> [I; 3] {
    let exchange = I::memory(2, variable, Rmw::Exchange(7));
    [exchange, I::JumpIf(2, 7, here), I::Store(variable, 0)]
}

/// An await that reads two variables is skipped because of a write to the second one, also if that
/// write was concurrent with an iteration that read only the first: found by seed 101135 of programs
/// that wait.
#[test]
fn concurrent_writes_to_every_variable_of_an_await_count() {
    let test_and_set = vec![
        I::Load(2, Y),
        I::JumpIf(2, 7, 0),
        I::compare_exchange(2, Y, 0, 7),
        I::JumpIf(2, 7, 0),
        I::Store(Y, 0),
    ];
    let either = [
        I::Load(2, X),
        I::JumpIf(2, 1, 7),
        I::Load(2, Y),
        I::JumpIf(2, 0, 3),
    ];
    let main = [I::Create(1), I::Create(2), I::Store(X, 1)];
    let program = Program {
        threads: vec![
            [&main[..], &lock(Y, 3), &[I::Join(2)]].concat(),
            [&lock(Y, 0)[..], &either].concat(),
            test_and_set,
        ],
        initial: Vec::new(),
    };
    let found = counts::<SaturatedRa>(program);
    assert_eq!((found.executions, found.blocked), (23, 5));
}

/// A thread that left one loop by an old write may wait forever in the next one: found by seed 109387
/// of programs with loops.
#[test]
fn a_thread_may_wait_forever_after_a_stale_read() {
    let first = vec![
        I::compare_exchange(2, X, 0, 7),
        I::JumpIf(2, 7, 0),
        I::Load(2, X),
        I::JumpIf(2, 0, 2),
    ];
    let acquire = [I::compare_exchange(2, X, 0, 7), I::JumpIf(2, 7, 0)];
    let second = [&acquire[..], &[I::Store(X, 0)]].concat();
    let exchange = I::memory(0, X, Rmw::Exchange(1));
    let third = [&acquire[..], &[exchange, I::Store(X, 0)]].concat();
    let program = Program::of_workers(vec![first, second, third]);
    let mut machine = ScriptMachine::new(program.clone());
    let all = allowed(&mut machine, Axioms::Ra, 100_000).expect("it is not that large");
    let classes = |executions: HashSet<Execution>| {
        let classes: HashSet<_> = executions.into_iter().map(class).collect();
        classes.len() as u64
    };
    let found = counts::<SaturatedRa>(program);
    assert_eq!((classes(all.complete), classes(all.stuck)), (8, 9));
    assert_eq!((found.executions, found.blocked), (8, 9 + 3));
}

/// Szymanski's mutual exclusion for thread `me` of two, once: its loops look at both flags, one
/// after the other.
fn szymanski(me: u32) -> Vec<I> {
    let mut code = vec![I::Store(me, 1)];
    let waits = |code: &mut Vec<I>, flags: &[u32], values: &[u128]| {
        let here = code.len();
        for &flag in flags {
            code.push(I::Load(0, flag));
            code.extend(values.iter().map(|&value| I::JumpIf(0, value, here)));
        }
    };
    waits(&mut code, &[X, Y], &[3, 4]);
    code.push(I::Store(me, 3));
    let (inside, closed) = (code.len() + 5, code.len() + 11);
    for flag in [X, Y] {
        code.extend([I::Load(0, flag), I::JumpIf(0, 1, inside)]);
    }
    code.extend([I::JumpIf(3, 0, closed), I::Store(me, 2)]);
    for flag in [X, Y] {
        code.extend([I::Load(0, flag), I::JumpIf(0, 4, closed)]);
    }
    code.push(I::JumpIf(3, 0, inside + 1));
    code.push(I::Store(me, 4));
    waits(&mut code, &[X, Y][..me as usize], &[2, 3, 4]);
    code.push(I::fetch_add(1, Z, 1));
    waits(&mut code, &[X, Y][me as usize + 1..], &[2, 3]);
    code.push(I::Store(me, 0));
    code
}

/// Under release-acquire a thread may overlook that the door was closed and wait forever. A skipped
/// await finds no later write in ten more executions.
#[test]
fn szymanski_has_131_classes_and_12_that_wait_forever() {
    let program = Program::of_workers(vec![szymanski(X), szymanski(Y)]);
    let mut machine = ScriptMachine::new(program.clone());
    let all = allowed(&mut machine, Axioms::Ra, 1_000_000).expect("it is not that large");
    let classes = |executions: HashSet<Execution>| -> HashSet<Execution> {
        executions.into_iter().map(class).collect()
    };
    let (complete, stuck) = (classes(all.complete).len(), classes(all.stuck).len());
    assert_eq!((complete, stuck), (131, 12));
    let searched = counts::<SaturatedRa>(program.clone());
    assert_eq!((searched.executions, searched.blocked), (131, 12 + 10));
    let searched = counts::<SaturatedSc>(program);
    assert_eq!((searched.executions, searched.blocked), (29, 0));
}
