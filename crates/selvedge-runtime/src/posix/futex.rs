//! The futex system call, which C++20's waiting atomics, semaphores and latches are built on.
//!
//! The kernel compares the word and joins the queue in one step. Here a thread joins first and looks
//! then; if the word has another value it leaves again, and hands on a wake-up that it got in the
//! meantime. No schedule can tell the difference. Both sides have a full fence between what they write and what
//! they look at, as in the kernel: else a waiter could miss the new word and its waker the waiter.

use std::ffi::{c_int, c_long};

use libc::{EAGAIN, EINVAL, ETIMEDOUT};
use selvedge_core::MemoryOrder::{AcqRel, Relaxed, SeqCst};
use selvedge_core::objects::{CONDITION_SLOTS, ObjectFunction, free_slot, was_woken};
use selvedge_core::{Function, Op, Outcome, Site, Width};

use super::clock;
use super::program::{self, error};
use crate::current;

const MATCH_ANY: usize = u32::MAX as usize;

/// A call with its six arguments; the result as `syscall` gives it.
pub(crate) fn call(arguments: [usize; 6], site: Site) -> c_long {
    let [address, operation, value, timeout, _, set] = arguments;
    program::check_not_null(address, site);
    if !current::has_fences() {
        let what = "the futex system call under a memory model without fences".to_owned();
        current::refuse(what, site);
    }
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

/// A word that threads wait for.
#[derive(Clone, Copy)]
struct Futex {
    address: usize,
    site: Site,
}

impl Futex {
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
        let Some(slot) = free_slot(self.step(ObjectFunction::ConditionEnqueue).read) else {
            let what = format!("more than {CONDITION_SLOTS} threads waiting for one futex");
            current::refuse(what, self.site);
        };
        self.fence();
        let at = current::location(self.address, Width(4));
        let found = current::perform(Op::Load { at, order: SeqCst }, self.site).read;
        if found != value.into() {
            if self.leave(slot) {
                self.step(ObjectFunction::ConditionSignal);
            }
            return error(EAGAIN);
        }
        match deadline {
            None => {
                self.step(ObjectFunction::ConditionAwait { slot });
                0
            }
            Some(_) if self.leave(slot) => 0,
            Some(deadline) => {
                clock::pass(deadline);
                error(ETIMEDOUT)
            }
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
