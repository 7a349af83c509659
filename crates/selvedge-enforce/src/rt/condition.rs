//! Condition variables: our own, so that a thread can be held between the steps of a wait, and so
//! that these steps are those that were verified.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::event::{event, hidden};
use super::mutex;
use super::stub::stubs;
use super::sys::{self, Timespec};
use super::thread;

stubs![
    "__wrap_pthread_cond_init" => init,
    "__wrap_pthread_cond_destroy" => destroy,
    "__wrap_pthread_cond_wait" => wait,
    "__wrap_pthread_cond_timedwait" => timed_wait,
    "__wrap_pthread_cond_clockwait" => clock_wait,
    "__wrap_pthread_cond_signal" => signal,
    "__wrap_pthread_cond_broadcast" => broadcast,
];

pub(super) const TIMED_OUT: c_int = 110;
const FOR_EVER: i64 = 1_000_000_000;
const SECOND: i64 = 1_000_000_000;

/// The contents of the program's `pthread_cond_t`; its static initialiser makes all of it zero. A
/// waiter has a slot, which is free, waiting, or woken.
#[repr(C)]
struct Condition {
    /// Held for a few instructions by the thread that changes the slots.
    busy: AtomicU32,
    /// Changes whenever somebody is woken.
    wakes: AtomicU32,
    waiting: AtomicU64,
    woken: AtomicU64,
    clock: AtomicU32,
}

fn at(address: usize) -> &'static Condition {
    // SAFETY: the program says that a condition variable is there, which is larger than ours and
    // aligned.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// The slots, as long as nobody else changes them.
struct Slots {
    waiting: u64,
    woken: u64,
}

impl Condition {
    fn change<R>(&self, change: impl FnOnce(&mut Slots) -> R) -> R {
        while self.busy.swap(1, Ordering::SeqCst) != 0 {
            // SAFETY: nothing to rely on.
            unsafe { sys::sched_yield() };
        }
        let mut slots = Slots {
            waiting: self.waiting.load(Ordering::Relaxed),
            woken: self.woken.load(Ordering::Relaxed),
        };
        let result = change(&mut slots);
        self.waiting.store(slots.waiting, Ordering::Relaxed);
        self.woken.store(slots.woken, Ordering::Relaxed);
        self.busy.store(0, Ordering::SeqCst);
        result
    }

    /// Joins the waiters; the bit of its slot. More of them than there are slots were refused by
    /// the verifier.
    fn enter(&self) -> u64 {
        loop {
            let slot = self.change(|slots| {
                let free = !(slots.waiting | slots.woken);
                let slot = free & free.wrapping_neg();
                slots.waiting |= slot;
                slot
            });
            if slot != 0 {
                return slot;
            }
            // SAFETY: nothing to rely on.
            unsafe { sys::sched_yield() };
        }
    }

    /// Leaves the waiters if it was woken, or if it does not matter `whether`.
    fn leave(&self, slot: u64, whether: bool) -> Option<bool> {
        self.change(|slots| {
            let woken = slots.woken & slot != 0;
            if !woken && whether {
                return None;
            }
            slots.woken &= !slot;
            slots.waiting &= !slot;
            Some(woken)
        })
    }

    /// Sleeps until it was woken.
    fn sleep(&self, slot: u64) {
        loop {
            let wakes = self.wakes.load(Ordering::SeqCst);
            if self.leave(slot, true).is_some() {
                return;
            }
            sys::futex_wait(self.wakes.as_ptr(), wakes, FOR_EVER);
        }
    }

    /// Sleeps until it was woken or until the deadline; whether it was woken.
    fn sleep_until(&self, slot: u64, clock: c_int, deadline: Timespec) -> bool {
        loop {
            let wakes = self.wakes.load(Ordering::SeqCst);
            if self.leave(slot, true).is_some() {
                return true;
            }
            let left = remaining(clock, deadline);
            if left <= 0 {
                return self.leave(slot, false) == Some(true);
            }
            sys::futex_wait(self.wakes.as_ptr(), wakes, left.min(FOR_EVER));
        }
    }

    /// Wakes one waiter or all of them.
    fn wake(&self, all: bool) {
        let some = self.change(|slots| {
            let waiting = slots.waiting;
            let chosen = match all {
                true => waiting,
                false => waiting & waiting.wrapping_neg(),
            };
            slots.waiting &= !chosen;
            slots.woken |= chosen;
            chosen != 0
        });
        if some {
            self.wakes.fetch_add(1, Ordering::SeqCst);
            sys::futex_wake_all(self.wakes.as_ptr());
        }
    }
}

/// How many nanoseconds are left.
fn remaining(clock: c_int, deadline: Timespec) -> i64 {
    let mut now = Timespec {
        seconds: 0,
        nanoseconds: 0,
    };
    // SAFETY: the time goes to a variable of ours.
    unsafe { sys::clock_gettime(clock, &raw mut now) };
    let seconds = deadline.seconds.saturating_sub(now.seconds);
    seconds
        .saturating_mul(SECOND)
        .saturating_add(deadline.nanoseconds - now.nanoseconds)
}

pub(super) extern "C" fn init(address: usize, attributes: usize) -> c_int {
    let clock = match attributes {
        0 => 0,
        // SAFETY: the program says that attributes are there: a number, whose second bit is the clock.
        _ => unsafe { core::ptr::with_exposed_provenance::<u32>(attributes).read() >> 1 & 1 },
    };
    hidden(|| {
        // Anything may have been there before.
        let condition = at(address);
        condition.waiting.store(0, Ordering::SeqCst);
        condition.woken.store(0, Ordering::SeqCst);
        condition.clock.store(clock, Ordering::SeqCst);
        condition.busy.store(0, Ordering::SeqCst);
    });
    0
}

pub(super) extern "C" fn destroy(address: usize) -> c_int {
    // The verifier asks whether somebody is still about to leave.
    if event(|| at(address).woken.load(Ordering::SeqCst)) != 0 {
        event(|| {
            while at(address).woken.load(Ordering::SeqCst) != 0 {
                // SAFETY: nothing to rely on.
                unsafe { sys::sched_yield() };
            }
        });
    }
    event(|| 0)
}

pub(super) extern "C" fn wait(address: usize, mutex: usize) -> c_int {
    let condition = at(address);
    let slot = event(|| condition.enter());
    mutex::unlock(mutex);
    event(|| condition.sleep(slot));
    mutex::lock(mutex)
}

pub(super) extern "C" fn timed_wait(address: usize, mutex: usize, deadline: usize) -> c_int {
    let clock = at(address).clock.load(Ordering::SeqCst) as c_int;
    clock_wait(address, mutex, clock, deadline)
}

extern "C" fn clock_wait(address: usize, mutex: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: the program says that a time is there.
    let deadline = unsafe { core::ptr::with_exposed_provenance::<Timespec>(deadline).read() };
    if !(0..SECOND).contains(&deadline.nanoseconds) {
        const INVALID: c_int = 22;
        return INVALID;
    }
    let condition = at(address);
    let slot = event(|| condition.enter());
    mutex::unlock(mutex);
    let woken = event(|| condition.sleep_until(slot, clock, deadline));
    match mutex::lock(mutex) {
        0 if !woken => TIMED_OUT,
        result => result,
    }
}

pub(super) extern "C" fn signal(address: usize) -> c_int {
    event(|| at(address).wake(false));
    thread::current().dirty = 0;
    0
}

pub(super) extern "C" fn broadcast(address: usize) -> c_int {
    event(|| at(address).wake(true));
    thread::current().dirty = 0;
    0
}
