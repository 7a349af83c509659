//! One thread at a time: how a program goes on that has left what was verified and is not to be stopped.
//!
//! A thread has the turn from one operation that may block to the next, and as long as it does not block it keeps
//! the turn until it ends. So threads run one after the other, in the order that the last proven prefix has them in:
//! in that of their creation, or the last one first if the prefix makes earlier threads wait for later ones. Threads
//! that no proven execution has come last. Nothing is proven about such a run.

use core::sync::atomic::{AtomicU64, Ordering};

use super::plan;
use super::sys;
use super::thread::{self, SERIAL, Thread};

/// The thread that has the turn, by the kernel's number, in the upper half. The lower half changes with every
/// operation, and is odd while the thread is in one.
static TURN: AtomicU64 = AtomicU64::new(0);
/// The threads that wait for the turn: the [`rank`], with the kernel's number in the lower half unless the thread
/// has not begun yet. Those that find no place wait all the same.
static WAITING: [AtomicU64; 64] = [const { AtomicU64::new(0) }; 64];

/// A thread that is in an operation for so long is blocked, and loses the turn.
const BLOCKED: i64 = 500_000;
/// A thread that performs this many operations without an end may be waiting for another one.
const LONG: u32 = 10_000;

const ORDER: Ordering = Ordering::SeqCst;

fn owner(turn: u64) -> u32 {
    (turn >> 32) as u32
}

/// Where the thread with this number comes in the order of threads: larger numbers come later. Zero only for main, which
/// is the first one in any case, because it creates the others.
fn rank(index: u32) -> u64 {
    let place = match index {
        0 | u32::MAX => index,
        _ if plan::numbering().is_descending() => u32::MAX - 1 - index,
        _ => index,
    };
    u64::from(place) << 32
}

/// A thread with this number is about to be created, and comes in its place even if it takes a while to begin.
pub(crate) fn expect(index: u32) {
    exchange(0, rank(index));
}

/// It is not created after all.
pub(crate) fn forget(index: u32) {
    exchange(rank(index), 0);
}

/// Puts `new` into a slot that has `old`.
fn exchange(old: u64, new: u64) -> Option<&'static AtomicU64> {
    let mut slots = WAITING.iter();
    slots.find(|slot| slot.compare_exchange(old, new, ORDER, ORDER).is_ok())
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
    let waits = |slot: &AtomicU64| slot.load(ORDER) != 0;
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
    let expected = rank(thread::current().index);
    let rank = expected | u64::from(own);
    let place = match expected {
        0 => exchange(0, rank),
        _ => exchange(expected, rank).or_else(|| exchange(0, rank)),
    };
    let earlier = |slot: &AtomicU64| (1..rank).contains(&slot.load(ORDER));
    let mut seen = 0;
    loop {
        let now = TURN.load(ORDER);
        let blocked = now as u32 & 1 != 0 && now == seen;
        let next = turn(now, own, false);
        if owner(now) == own
            || (owner(now) == 0 || blocked)
                && !WAITING.iter().any(earlier)
                && TURN.compare_exchange(now, next, ORDER, ORDER).is_ok()
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
