//! Programs in which a thread skips an await and then finds no later write to read. The execution
//! is blocked; no class may be lost or visited twice. Found by shrinking random programs; each is
//! compared with brute force.

use selvedge_core::op::{MemoryOrder, Rmw};
use selvedge_testkit::Instruction as I;
use selvedge_testkit::Program;

use super::reads_from::compare_both;

const X: u32 = 0;
const Y: u32 = 1;

/// `compare_exchange(variable, 0, 7)`
fn take(variable: u32) -> I {
    I::compare_exchange(2, variable, 0, 7)
}

fn swap(variable: u32) -> I {
    I::memory(2, variable, Rmw::Exchange(7))
}

/// Goes back to `line` if what was read last is `value`.
fn while_it_is(value: u128, line: usize) -> I {
    I::JumpIf(2, value, line)
}

/// Compares with brute force; this many executions are blocked under either model although no thread
/// waits forever in them.
fn check(threads: &[&[I]], blocked: u64) {
    let threads = threads.iter().map(|code| code.to_vec()).collect();
    let initial = Vec::new();
    let found = compare_both(&Program { threads, initial });
    assert_eq!(found, (blocked, blocked));
}

/// Main skips its await of its own zero, and the other thread then exchanges the initial one: seed
/// 1.
#[test]
fn another_thread_may_read_the_wrong_write() {
    check(
        &[
            &[I::Create(1), I::Store(X, 0), take(X), while_it_is(7, 2)],
            &[swap(X), while_it_is(7, 0), I::Load(2, Y)],
        ],
        1,
    );
}

/// Main waits for a write of the second thread, which the first one's update prevents: seed 648.
#[test]
fn an_update_may_prevent_the_write_that_a_thread_waits_for() {
    check(
        &[
            &[I::Create(1), I::Create(2), I::Load(2, Y), while_it_is(1, 2)],
            &[I::Load(2, X), while_it_is(7, 0), take(X)],
            &[swap(X), while_it_is(7, 0), I::compare_exchange(1, Y, 0, 1)],
        ],
        1,
    );
}

/// Main skips its await twice: seed 297.
#[test]
fn an_await_may_be_skipped_twice() {
    check(
        &[
            &[I::Create(1), I::Store(X, 2), take(X), while_it_is(7, 2)],
            &[
                I::Store(X, 0),
                take(X),
                while_it_is(7, 1),
                I::Store(X, 0),
                take(X),
                while_it_is(7, 4),
                I::Store(X, 2),
            ],
        ],
        5,
    );
}

/// Each of two skipped awaits could read a later write, but not both of them: seed 13423.
#[test]
fn two_skipped_awaits_may_need_the_same_write() {
    check(
        &[
            &[I::Create(1), I::Load(2, X), while_it_is(0, 1)],
            &[
                I::Create(2),
                swap(X),
                I::Store(X, 0),
                I::Load(2, X),
                while_it_is(1, 3),
            ],
            &[
                I::Store(X, 0),
                take(X),
                while_it_is(7, 1),
                I::fetch_add(1, X, 1),
            ],
        ],
        10,
    );
}

/// A thread that skipped an await does not write what another one waits for by reading a write that
/// it skipped: seed 988.
#[test]
fn a_skipped_await_does_not_compete_for_what_it_skipped() {
    check(
        &[
            &[I::Create(1), I::Create(2), I::Create(3)],
            &[take(X), while_it_is(7, 0)],
            &[I::Load(2, X), while_it_is(0, 0), take(X), I::Store(X, 0)],
            &[I::Store(X, 1), take(X), while_it_is(7, 1), I::Store(X, 0)],
        ],
        2,
    );
}

/// The second thread writes what the first one waits for only if the third one adds to what main
/// writes: seed 30531.
#[test]
fn a_later_write_may_need_several_threads() {
    check(
        &[
            &[
                I::Create(1),
                I::Create(2),
                swap(X),
                while_it_is(7, 2),
                I::Store(X, 0),
            ],
            &[I::Create(3), take(Y), while_it_is(7, 1)],
            &[
                I::Load(2, X),
                I::JumpIf(2, 1, 4),
                I::Load(2, Y),
                while_it_is(0, 0),
                swap(Y),
                I::Store(Y, 0),
            ],
            &[
                take(X),
                while_it_is(7, 0),
                I::Store(X, 0),
                I::fetch_add(0, X, 1),
            ],
        ],
        2,
    );
}

/// Only after the fence in the loop of the second thread is it known that the thread stays there.
/// Its exchange is not declared to others before: seed 305732.
#[test]
fn an_iteration_may_end_with_a_fence() {
    let put_one = I::memory(2, X, Rmw::Exchange(1));
    check(
        &[
            &[I::Create(1), I::Create(2), swap(X), I::Store(X, 0)],
            &[I::Create(3), put_one],
            &[I::Fence(MemoryOrder::AcqRel), swap(X), while_it_is(7, 0)],
            &[swap(X), I::Store(X, 0)],
        ],
        10,
    );
}

/// Three threads skip their awaits: seed 735.
#[test]
fn three_awaits_may_be_skipped() {
    check(
        &[
            &[
                I::Create(1),
                I::Create(2),
                I::Create(3),
                I::Load(2, X),
                while_it_is(0, 3),
                take(Y),
            ],
            &[
                I::fetch_add(1, X, 1),
                swap(X),
                while_it_is(7, 1),
                I::Store(X, 0),
            ],
            &[take(Y), while_it_is(7, 0)],
            &[
                I::Store(Y, 1),
                swap(X),
                while_it_is(7, 1),
                I::Store(X, 0),
                I::Store(X, 0),
            ],
        ],
        8,
    );
}

/// Several exchanges that find what they write spin concurrently: seed 244.
#[test]
fn several_threads_may_wait_forever() {
    check(
        &[
            &[I::Create(1), I::Create(2), I::Create(3)],
            &[swap(X), while_it_is(7, 0)],
            &[swap(X), while_it_is(7, 0), I::Store(X, 0)],
            &[take(X), while_it_is(7, 0), I::Store(X, 0)],
        ],
        0,
    );
}
