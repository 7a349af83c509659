//! Condition variables.

use std::ffi::c_int;

use libc::{EINVAL, ETIMEDOUT};
use selvedge_core::MemoryOrder::{AcqRel, Relaxed, Release};
use selvedge_core::objects::{CONDITION_SLOTS, ObjectFunction, free_slot, was_woken};
use selvedge_core::op::Value;
use selvedge_core::{Op, Site};

use super::attributes::change;
use super::object::Object;
use super::program::{peek, poke, read, store_int, wipe};
use super::state::local;
use super::{clock, mutex};
use crate::current::{self, Entry};
use crate::problem::PLACE;

entry_points![
    pthread_cond_init(2),
    pthread_cond_destroy(1),
    pthread_cond_wait(2),
    pthread_cond_timedwait(3),
    pthread_cond_clockwait(4),
    pthread_cond_signal(1),
    pthread_cond_broadcast(1),
    pthread_condattr_init(1),
    pthread_condattr_destroy(1),
    pthread_condattr_setclock(2),
    pthread_condattr_getclock(2),
    pthread_condattr_setpshared(2),
    pthread_condattr_getpshared(2),
    selvedge_condition_enter(3),
    selvedge_condition_woken(3),
    selvedge_condition_leave(3),
];

const SIZE: usize = 48;
/// Where the clock of timed waits is kept; zero, as in a static initialiser, is the realtime one.
const CLOCK_OFFSET: usize = 36;

/// The condition variable at `address`.
pub(crate) fn condition(address: usize) -> Object {
    Object::new(address, SIZE, "condition variable")
}

/// Begins its life.
pub(crate) fn initialise(condition: Object, clock: c_int) {
    condition.initialise(0);
    wipe(condition.address + 8, SIZE - 8);
    poke(condition.address + CLOCK_OFFSET, clock);
}

/// Ends its life. Threads that were woken but have not left yet are waited for, as glibc does;
/// threads that nobody has woken make it a bug.
pub(crate) fn destroy(condition: Object) {
    let value = condition.load();
    let waiting = |value: Value| value as u64 != 0;
    if value != 0 && !waiting(value) {
        condition.step(ObjectFunction::WriteLock, AcqRel);
    }
    condition.destroy(waiting, "that threads wait on");
}

/// Waits; 0 or an error number. Leaving releases, for the thread that destroys the condition
/// variable once all have left.
pub(crate) fn wait(condition: Object, mutex: Object) -> c_int {
    let slot = enter(condition, mutex);
    if wakes_spuriously(condition.site) {
        condition.step_unchecked(ObjectFunction::ConditionLeave { slot }, AcqRel);
    } else {
        condition.step_unchecked(ObjectFunction::ConditionAwait { slot }, AcqRel);
    }
    mutex::lock(mutex)
}

/// Waits up to `deadline`, which comes whenever nobody has woken the thread before.
pub(crate) fn timed_wait(condition: Object, mutex: Object, clock: c_int, at: usize) -> c_int {
    let Some(deadline) = clock::deadline(clock, at, condition.site) else {
        return EINVAL;
    };
    let entry = Entry::now();
    let slot = enter(condition, mutex);
    let left = condition.step_unchecked(ObjectFunction::ConditionLeave { slot }, AcqRel);
    let woken = was_woken(left.read, slot);
    if !woken {
        clock::pass(deadline);
        // A loop around this wait is recognised here, where the thread does not hold the mutex: others may
        // have taken it between any two rounds.
        entry.restore();
    }
    match mutex::lock(mutex) {
        0 if !woken => ETIMEDOUT,
        result => result,
    }
}

/// The part of a wait before it, for threads that may be cancelled during it: the place among the
/// waiters, with [`SPURIOUS`] added if the wait ends without a signal.
extern "C" fn selvedge_condition_enter(address: usize, mutex: usize, site: usize) -> u32 {
    let site = Site(site as u64);
    let slot = enter(condition(address).seen_from(site), mutex::mutex(mutex));
    if wakes_spuriously(site) {
        slot + SPURIOUS
    } else {
        slot
    }
}

/// More than any place among waiters.
const SPURIOUS: u32 = 2 * CONDITION_SLOTS;

extern "C" fn selvedge_condition_woken(address: usize, place: u32, site: usize) -> c_int {
    if place >= SPURIOUS {
        return 1;
    }
    let condition = condition(address).seen_from(Site(site as u64));
    was_woken(condition.load(), place).into()
}

/// The end of such a wait; tells whether there was a signal.
extern "C" fn selvedge_condition_leave(address: usize, place: u32, site: usize) -> c_int {
    let slot = place % SPURIOUS;
    let condition = condition(address).seen_from(Site(site as u64));
    let left = condition.step_unchecked(ObjectFunction::ConditionLeave { slot }, AcqRel);
    was_woken(left.read, slot).into()
}

/// Wakes one waiter.
pub(crate) fn signal(condition: Object) {
    condition.step(ObjectFunction::ConditionSignal, Release);
}

/// Wakes all waiters.
pub(crate) fn broadcast(condition: Object) {
    condition.step(ObjectFunction::ConditionBroadcast, Release);
}

/// Joins the waiters and gives the mutex back.
fn enter(condition: Object, mutex: Object) -> u32 {
    if !mutex::is_held(mutex) {
        condition.misuse(format_args!(
            "wait on {PLACE}, a condition variable, without holding the mutex"
        ));
    }
    let outcome = condition.step(ObjectFunction::ConditionEnqueue, Relaxed);
    let Some(slot) = free_slot(outcome.read) else {
        let what = format!("more than {CONDITION_SLOTS} threads waiting on one condition variable");
        current::refuse(what, condition.site);
    };
    mutex::unlock(mutex);
    slot
}

/// Whether this wait ends without a signal. One such wait per thread is enough to tell whether
/// the program checks its condition again, and more would never come to an end.
fn wakes_spuriously(site: Site) -> bool {
    if !current::spurious_wakeups() || local(|local| local.woke_spuriously) {
        return false;
    }
    let spurious = current::perform(Op::Choose { alternatives: 2 }, site).read == 1;
    local(|local| local.woke_spuriously = spurious);
    spurious
}

extern "C" fn pthread_cond_init(address: usize, attributes: usize) -> c_int {
    let clock = if attributes == 0 {
        libc::CLOCK_REALTIME
    } else {
        read(attributes, current::site())
    };
    initialise(condition(address), clock);
    0
}

extern "C" fn pthread_cond_destroy(address: usize) -> c_int {
    destroy(condition(address));
    0
}

extern "C" fn pthread_cond_wait(address: usize, mutex: usize) -> c_int {
    wait(condition(address), mutex::mutex(mutex))
}

extern "C" fn pthread_cond_timedwait(address: usize, mutex: usize, deadline: usize) -> c_int {
    let condition = condition(address);
    let clock = peek(address + CLOCK_OFFSET);
    timed_wait(condition, mutex::mutex(mutex), clock, deadline)
}

extern "C" fn pthread_cond_clockwait(
    address: usize,
    mutex: usize,
    clock: c_int,
    deadline: usize,
) -> c_int {
    timed_wait(condition(address), mutex::mutex(mutex), clock, deadline)
}

extern "C" fn pthread_cond_signal(address: usize) -> c_int {
    signal(condition(address));
    0
}

extern "C" fn pthread_cond_broadcast(address: usize) -> c_int {
    broadcast(condition(address));
    0
}

extern "C" fn pthread_condattr_init(attributes: usize) -> c_int {
    store_int(attributes, libc::CLOCK_REALTIME, current::site());
    0
}

extern "C" fn pthread_condattr_destroy(attributes: usize) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_condattr_setclock(attributes: usize, clock: c_int) -> c_int {
    if clock != libc::CLOCK_REALTIME && clock != libc::CLOCK_MONOTONIC {
        return EINVAL;
    }
    store_int(attributes, clock, current::site());
    0
}

extern "C" fn pthread_condattr_getclock(attributes: usize, clock: usize) -> c_int {
    let site = current::site();
    store_int(clock, read(attributes, site), site);
    0
}

extern "C" fn pthread_condattr_setpshared(attributes: usize, _shared: c_int) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_condattr_getpshared(attributes: usize, shared: usize) -> c_int {
    let site = current::site();
    read::<c_int>(attributes, site);
    store_int(shared, libc::PTHREAD_PROCESS_PRIVATE, site);
    0
}
