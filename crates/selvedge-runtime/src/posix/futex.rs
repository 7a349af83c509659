//! The futex system call, and waiting for C++20's atomics, semaphores, latches and barriers, which
//! are built on the same queues (`include/cxx`).
//!
//! The kernel compares the word and joins the queue in one step. Here a thread joins first and
//! looks then; if the word has another value it leaves again, and hands on a wake-up that it got in
//! the meantime. No schedule can tell the difference. Both sides have a full fence between what
//! they write and what they look at, as in the kernel: else a waiter could miss the new word and
//! its waker the waiter.

use std::ffi::{c_int, c_long};

use libc::{EAGAIN, EINVAL, ETIMEDOUT};
use selvedge_core::MemoryOrder::{AcqRel, Relaxed, SeqCst};
use selvedge_core::objects::{CONDITION_SLOTS, ObjectFunction, free_slot, was_woken};
use selvedge_core::{Function, Op, Outcome, Site, Width};

use super::clock;
use super::program::{self, error};
use crate::current;

entry_points![
    selvedge_wait_join(1),
    selvedge_wait_leave(2),
    selvedge_wait_sleep(2),
    selvedge_wait_while(2),
    selvedge_wait_wake(2),
];

const MATCH_ANY: usize = u32::MAX as usize;

/// Joins the queue of an object; the place in it.
extern "C" fn selvedge_wait_join(address: usize) -> u32 {
    Futex::of_object(address).join()
}

/// Leaves the queue without having slept.
extern "C" fn selvedge_wait_leave(address: usize, slot: u32) {
    Futex::of_object(address).withdraw(slot);
}

/// Sleeps until a notification.
extern "C" fn selvedge_wait_sleep(address: usize, slot: u32) {
    Futex::of_object(address).sleep(slot);
}

/// Sleeps until a notification if the word has this value.
extern "C" fn selvedge_wait_while(address: usize, value: u32) {
    let futex = Futex::of_object(address);
    let slot = futex.join();
    match futex.has(value) {
        true => futex.sleep(slot),
        false => futex.withdraw(slot),
    }
}

/// Wakes the threads that wait for an object, or one of them.
extern "C" fn selvedge_wait_wake(address: usize, all: c_int) {
    let count = if all != 0 { c_int::MAX } else { 1 };
    Futex::of_object(address).wake(count);
}

/// A call with its six arguments; the result as `syscall` gives it.
pub(crate) fn call(arguments: [usize; 6], site: Site) -> c_long {
    let [address, operation, value, timeout, _, set] = arguments;
    program::check_not_null(address, site);
    check_fences("the futex system call", site);
    let flags = libc::FUTEX_PRIVATE_FLAG | libc::FUTEX_CLOCK_REALTIME;
    let futex = Futex { address, site };
    let result = match (operation as c_int & !flags, set & MATCH_ANY) {
        (libc::FUTEX_WAIT, _) => futex.wait(value as u32, timeout, clock::after),
        (libc::FUTEX_WAIT_BITSET, MATCH_ANY) => futex.wait(value as u32, timeout, monotonic),
        (libc::FUTEX_WAKE, _) | (libc::FUTEX_WAKE_BITSET, MATCH_ANY) => futex.wake(value as c_int),
        (other, _) => current::refuse(format!("operation {other} of the futex system call"), site),
    };
    result.into()
}

fn monotonic(timeout: usize, site: Site) -> Option<u64> {
    clock::deadline(libc::CLOCK_MONOTONIC, timeout, site)
}

/// Nothing that waits in these queues can be understood where there are no fences.
fn check_fences(what: &str, site: Site) {
    if !current::has_fences() {
        let what = format!("{what} under a memory model without fences");
        current::refuse(what, site);
    }
}

/// A word that threads wait for.
#[derive(Clone, Copy)]
struct Futex {
    address: usize,
    site: Site,
}

impl Futex {
    fn of_object(address: usize) -> Futex {
        let site = current::site();
        check_fences("waiting for an atomic", site);
        Futex { address, site }
    }

    fn step(self, function: ObjectFunction) -> Outcome {
        let op = Op::Update {
            at: current::queue(self.address),
            function: Function::Object(function),
            order: AcqRel,
            failure: Relaxed,
        };
        current::perform(op, self.site)
    }

    /// Waits for a wake-up if the word has this value.
    fn wait(self, value: u32, timeout: usize, end: fn(usize, Site) -> Option<u64>) -> c_int {
        let deadline = if timeout == 0 {
            None
        } else {
            match end(timeout, self.site) {
                Some(deadline) => Some(deadline),
                None => return error(EINVAL),
            }
        };
        let slot = self.join();
        if !self.has(value) {
            self.withdraw(slot);
            return error(EAGAIN);
        }
        match deadline {
            None => {
                self.sleep(slot);
                0
            }
            Some(_) if self.leave(slot) => 0,
            Some(deadline) => {
                clock::pass(deadline);
                error(ETIMEDOUT)
            }
        }
    }

    /// Joins the queue, before looking at the word.
    fn join(self) -> u32 {
        let Some(slot) = free_slot(self.step(ObjectFunction::ConditionEnqueue).read) else {
            let what = format!("more than {CONDITION_SLOTS} threads waiting for one futex");
            current::refuse(what, self.site);
        };
        self.fence();
        slot
    }

    fn has(self, value: u32) -> bool {
        let at = current::location(self.address, Width(4));
        let found = current::perform(Op::Load { at, order: SeqCst }, self.site).read;
        found == value.into()
    }

    fn sleep(self, slot: u32) {
        self.step(ObjectFunction::ConditionAwait { slot });
    }

    /// Leaves the queue, and hands on a wake-up that came in the meantime.
    fn withdraw(self, slot: u32) {
        if self.leave(slot) {
            self.step(ObjectFunction::ConditionSignal);
        }
    }

    fn fence(self) {
        current::perform(Op::Fence { order: SeqCst }, self.site);
    }

    /// Leaves the queue; says whether there was a wake-up.
    fn leave(self, slot: u32) -> bool {
        was_woken(
            self.step(ObjectFunction::ConditionLeave { slot }).read,
            slot,
        )
    }

    /// Wakes up to `count` waiters; how many there were.
    fn wake(self, count: c_int) -> c_int {
        self.fence();
        if count == c_int::MAX {
            let waiters = self.step(ObjectFunction::ConditionBroadcast).read as u64;
            return waiters.count_ones().cast_signed();
        }
        for woken in 0..count {
            if self.step(ObjectFunction::ConditionSignal).read as u64 == 0 {
                return woken;
            }
        }
        count
    }
}
