//! One thread at a time: how a program goes on that has left what was verified and is not to be stopped.
//!
//! A thread has the turn from one operation that may block to the next, and as long as it does not block it keeps
//! the turn until it ends. So threads run one after the other, in the order of their creation, as in the first
//! schedule that is proven for most programs. Nothing is proven about such a run.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::sys;
use super::thread::{self, SERIAL, Thread};

/// The thread that has the turn, by the kernel's number, in the upper half. The lower half changes with every
/// operation, and is odd while the thread is in one.
static TURN: AtomicU64 = AtomicU64::new(0);
/// The kernel's numbers of the threads that wait for the turn. Those that find no place wait all the same.
static WAITING: [AtomicU32; 64] = [const { AtomicU32::new(0) }; 64];

/// A thread that is in an operation for so long is blocked, and loses the turn.
const BLOCKED: i64 = 500_000;
/// A thread that performs so many operations without an end may be waiting for another one.
const LONG: u32 = 10_000;

const ORDER: Ordering = Ordering::SeqCst;

fn owner(turn: u64) -> u32 {
    (turn >> 32) as u32
}

/// The next value, with this owner.
fn turn(before: u64, owner: u32, busy: bool) -> u64 {
    let count = (before as u32 | 1).wrapping_add(1);
    u64::from(owner) << 32 | u64::from(count | u32::from(busy))
}

/// From now on the running thread takes turns with the others.
#[cold]
pub(crate) fn join(me: &mut Thread) {
    if me.active & SERIAL == 0 {
        me.active = SERIAL;
        me.since_look = 0;
        take_turn();
    }
}

/// Performs an operation, during which others may have the turn if it blocks.
pub(crate) fn perform<R>(operation: impl FnOnce() -> R) -> R {
    let me = thread::current();
    let own = thread::number();
    me.since_look += 1;
    if me.since_look >= LONG {
        me.since_look = 0;
        give_way();
    }
    let before = TURN.load(ORDER);
    if owner(before) != own {
        take_turn();
    }
    let busy = turn(TURN.load(ORDER), own, true);
    TURN.store(busy, ORDER);
    let result = operation();
    let after = turn(busy, own, false);
    if TURN.compare_exchange(busy, after, ORDER, ORDER).is_err() {
        take_turn();
    }
    result
}

/// The running thread is about to sleep, which it keeps the turn for: but it may be waiting for another thread.
pub(crate) fn may_wait() {
    const SLEEPS: u32 = 10;
    let me = thread::current();
    me.since_look += LONG / SLEEPS;
    if me.since_look >= LONG {
        me.since_look = 0;
        give_way();
    }
}

/// The running thread ends.
pub(crate) fn leave() {
    let now = TURN.load(ORDER);
    if owner(now) == thread::number() {
        TURN.store(turn(now, 0, false), ORDER);
        sys::futex_wake_all(TURN.as_ptr().cast());
    }
}

/// Lets another thread have the turn, if one waits for it.
fn give_way() {
    let waits = |slot: &AtomicU32| slot.load(ORDER) != 0;
    if owner(TURN.load(ORDER)) == thread::number() && WAITING.iter().any(waits) {
        leave();
        let free = TURN.load(ORDER);
        if owner(free) == 0 {
            sys::futex_wait(TURN.as_ptr().cast(), free as u32, BLOCKED);
        }
        take_turn();
    }
}

/// Waits for the turn.
fn take_turn() {
    let own = thread::number();
    let place = WAITING
        .iter()
        .find(|slot| slot.compare_exchange(0, own, ORDER, ORDER).is_ok());
    let earlier = |slot: &AtomicU32| (1..own).contains(&slot.load(ORDER));
    let mut seen = 0;
    loop {
        let now = TURN.load(ORDER);
        let free = owner(now) == 0 && !WAITING.iter().any(earlier);
        let blocked = now as u32 & 1 != 0 && now == seen;
        let next = turn(now, own, false);
        if owner(now) == own
            || (free || blocked) && TURN.compare_exchange(now, next, ORDER, ORDER).is_ok()
        {
            break;
        }
        seen = now;
        sys::futex_wait(TURN.as_ptr().cast(), now as u32, BLOCKED);
    }
    if let Some(place) = place {
        place.store(0, ORDER);
    }
}
