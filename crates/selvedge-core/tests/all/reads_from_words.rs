//! Threads that leave their turn in a loop to others keep their word: they read something new, or
//! wait for ever. Found by shrinking random programs; each is compared with brute force, and no
//! execution may come to nothing.

use selvedge_core::op::{MemoryOrder, Rmw};
use selvedge_core::tracer::Limits;
use selvedge_testkit::Instruction as I;
use selvedge_testkit::Program;

use super::reads_from::{compare_both, in_vain_within};

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

fn program(threads: &[&[I]]) -> Program {
    let threads = threads.iter().map(|code| code.to_vec()).collect();
    let initial = Vec::new();
    Program { threads, initial }
}

fn check(threads: &[&[I]]) {
    compare_both(&program(threads));
}

/// Main leaves its own zero to the other one, who must not be content with the initial one: seed 1.
#[test]
fn who_could_help_does_not_take_something_else() {
    check(&[
        &[I::Create(1), I::Store(X, 0), take(X), while_it_is(7, 2)],
        &[swap(X), while_it_is(7, 0), I::Load(2, Y)],
    ]);
}

/// The second thread's write is what main waits for; the first one's update would keep it away, so
/// that is put off: seed 648.
#[test]
fn a_read_that_would_do_harm_is_put_off() {
    check(&[
        &[I::Create(1), I::Create(2), I::Load(2, Y), while_it_is(1, 2)],
        &[I::Load(2, X), while_it_is(7, 0), take(X)],
        &[swap(X), while_it_is(7, 0), I::compare_exchange(1, Y, 0, 1)],
    ]);
}

/// Main leaves its turn twice. What it may hope for after that turned up beside an attempt that it
/// made before the first time: seed 297.
#[test]
fn all_that_can_help_is_remembered() {
    check(&[
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
    ]);
}

/// Two threads could keep their word, but not both of them: seed 13423.
#[test]
fn all_have_to_keep_their_word_together() {
    check(&[
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
    ]);
}

/// Nobody helps by doing what he left to others himself: seed 988.
#[test]
fn who_left_his_turn_does_not_help_with_it() {
    check(&[
        &[I::Create(1), I::Create(2), I::Create(3)],
        &[take(X), while_it_is(7, 0)],
        &[I::Load(2, X), while_it_is(0, 0), take(X), I::Store(X, 0)],
        &[I::Store(X, 1), take(X), while_it_is(7, 1), I::Store(X, 0)],
    ]);
}

/// The second thread helps only if the third one adds to what main writes. That has to be offered
/// to the third one by who remembers it, since everything else it could read meanwhile is refused:
/// seed 30531.
#[test]
fn help_is_offered_to_whom_it_takes() {
    check(&[
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
    ]);
}

/// The second thread goes round beside a fence, which shows only after that fence. The others may
/// not be told of what it writes before: seed 305732.
#[test]
fn what_goes_round_is_seen_after_its_fence() {
    let put_one = I::memory(2, X, Rmw::Exchange(1));
    check(&[
        &[I::Create(1), I::Create(2), swap(X), I::Store(X, 0)],
        &[I::Create(3), put_one],
        &[I::Fence(MemoryOrder::AcqRel), swap(X), while_it_is(7, 0)],
        &[swap(X), I::Store(X, 0)],
    ]);
}

/// Three threads left their turns, and there are a dozen rivals that could help one of them. None
/// of them can help the second one, in no order: seed 735.
#[test]
fn rivals_that_help_together_are_not_tried_in_every_order() {
    compare_both(&many_rivals());
}

fn many_rivals() -> Program {
    program(&[
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
    ])
}

/// Who does not know whether somebody can help hopes for it: executions may come to nothing then,
/// but none is lost.
#[test]
fn limits_of_what_is_remembered_and_imagined_lose_nothing() {
    let usual = Limits::default();
    for limits in [
        Limits {
            remembered: 5,
            ..usual
        },
        Limits {
            imagined: 0,
            ..usual
        },
    ] {
        let in_vain = in_vain_within(&many_rivals(), limits);
        assert!(in_vain > 0, "{limits:?}");
    }
}

/// Exchanges that find what they write go round beside each other: seed 244.
#[test]
fn several_may_wait_for_ever() {
    check(&[
        &[I::Create(1), I::Create(2), I::Create(3)],
        &[swap(X), while_it_is(7, 0)],
        &[swap(X), while_it_is(7, 0), I::Store(X, 0)],
        &[take(X), while_it_is(7, 0), I::Store(X, 0)],
    ]);
}
