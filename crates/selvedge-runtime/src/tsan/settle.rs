//! Stores that were announced: when their values are known, and what becomes of them then.
//!
//! A store of the program is *in flight* from its announcement until the check behind its
//! instruction tells that it was made ([`stored`]). Whatever the thread does in between, the store
//! happens at its instruction. What the runtime writes on the program's behalf, as `memcpy`, is
//! *owed*: it is complete when the runtime is entered the next time ([`at_entry`]).

use selvedge_core::{FailureKind, MemoryOrder, Op, Site, Value};

use super::plain::perform_store;
use crate::access::{Access, Problem};
use crate::current;
use crate::gate::gate;
use crate::memory;
use crate::problem::report;
use crate::runtime::{Deferred, Phase, Runtime, with};
use crate::signals;

/// A stub found something left over from the thread's last entry.
pub(crate) extern "C" fn at_entry() {
    now();
}

/// Performs the stores that are owed.
pub(crate) fn now() {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).attention = 0 };
    let (owed, expired, phase) = with(|runtime| {
        let expired = std::mem::take(&mut runtime.watchdog.expired);
        let owed = std::mem::take(&mut runtime.owed);
        (owed, expired, runtime.phase)
    });
    if phase != Phase::Fiber {
        return;
    }
    if expired {
        current::fail(
            FailureKind::EndlessLoop,
            signals::endless(),
            current::site(),
        );
    }
    let stores: Vec<_> = owed.iter().map(|store| (*store, take(store))).collect();
    for (store, value) in stores {
        perform(&store, value);
    }
}

/// Takes the value that a store has left in memory, and puts back what was there before.
fn take(store: &Deferred) -> Value {
    let (address, width) = (store.access.address, store.access.size as u8);
    let value = memory::read(address, width);
    // What an object's memory holds matters only before its first use.
    if store.object.is_none() {
        memory::write(address, width, store.old);
    }
    value
}

/// Performs a store whose value is known.
fn perform(store: &Deferred, value: Value) {
    let (address, width) = (store.access.address, store.access.size as u8);
    let site = Site(store.access.site as u64);
    match store.object {
        None => perform_store(address, width, value, store.order, site),
        Some(at) => {
            current::forget_entry();
            let order = MemoryOrder::Plain;
            current::perform(Op::Store { at, value, order }, site);
        }
    }
}

/// A store in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InFlight {
    store: Deferred,
    /// The bytes that were not written yet, one bit each.
    left: u32,
    /// How many calls the thread was inside of at its announcement.
    depth: usize,
    /// What it has written, once it was made.
    value: Option<Value>,
}

/// The running thread is about to make `store`, of which it writes only the bytes in `bytes`.
pub(crate) fn announce(store: Deferred, bytes: u32) {
    with(|runtime| {
        let thread = runtime.current();
        let depth = thread.frames.depth();
        let new = InFlight {
            store,
            left: bytes,
            depth,
            value: None,
        };
        let Access { address, size, .. } = store.access;
        let same = |known: &&mut InFlight| {
            let access = known.store.access;
            (access.address, access.size) == (address, size) && known.value.is_none()
        };
        // Some stores are announced twice.
        match thread.in_flight.iter_mut().find(same) {
            Some(known) => known.left |= bytes,
            None => thread.in_flight.push(new),
        }
    });
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stores = 1 };
}

/// The running thread has written `size` bytes at `address`, and has stores in flight.
pub(crate) extern "C" fn stored(address: usize, size: usize) {
    if !with(|runtime| runtime.complete(address, size)) {
        return;
    }
    while let Some((store, value)) = with(next_complete) {
        perform(&store, value);
    }
    let empty = with(|runtime| runtime.current().in_flight.is_empty());
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stores = usize::from(!empty) };
}

/// The first store that was made and is not performed.
fn next_complete(runtime: &mut Runtime) -> Option<(Deferred, Value)> {
    let in_flight = &mut runtime.current().in_flight;
    let place = in_flight.iter().position(|store| store.value.is_some())?;
    let made = in_flight.remove(place);
    made.value.map(|value| (made.store, value))
}

impl Runtime {
    /// Notes which stores in flight are made by a write of `size` bytes at `address`, and puts what
    /// was there before back for them. Tells whether there are any.
    fn complete(&mut self, address: usize, size: usize) -> bool {
        let mut any = false;
        for store in &mut self.current().in_flight {
            if store.value.is_some() {
                continue;
            }
            let start = store.store.access.address;
            let from = address.clamp(start, start + 32) - start;
            let to = address.saturating_add(size).clamp(start, start + 32) - start;
            let written = (u64::MAX << from & !(u64::MAX << to)) as u32;
            if store.left & written == 0 {
                continue;
            }
            store.left &= !written;
            if store.left == 0 {
                store.value = Some(memory::read(start, store.store.access.size as u8));
                any = true;
            }
        }
        if any {
            for made in self.threads[self.running].in_flight.iter().rev() {
                if made.value.is_some() {
                    take(&made.store);
                }
            }
        }
        any
    }

    /// The runtime makes `store`, whatever the program has announced of it.
    pub(crate) fn take_over(&mut self, store: &Deferred) {
        let access = store.access;
        self.current().in_flight.retain(|known| {
            let known = known.store.access;
            (known.address, known.size) != (access.address, access.size)
        });
        if self.current().in_flight.is_empty() {
            // SAFETY: the gate is mapped while a program is loaded.
            unsafe { (*gate()).stores = 0 };
        }
    }

    /// Others may run before the stores in flight are made.
    pub(crate) fn renew_in_flight(&mut self) {
        for flying in &mut self.current().in_flight {
            if flying.value.is_none() {
                let access = flying.store.access;
                flying.store.old = memory::read(access.address, access.size as u8);
            }
        }
    }
}

/// The running thread ends: everything it has done is known.
pub(crate) fn finish() {
    let problem = with(|runtime| {
        if runtime.settings.stateful {
            return None;
        }
        let thread = runtime.current();
        let lost = thread.in_flight.first();
        let lost = lost.map(|store| (Problem::Lost, store.store.access));
        let unseen = || {
            runtime
                .unseen_change()
                .map(|access| (Problem::Unseen, access))
        };
        lost.or_else(unseen)
    });
    if let Some((problem, access)) = problem {
        report(problem, access);
    }
}

/// The running thread returns from a function: what it has announced inside was made.
#[cold]
pub(crate) fn leave() {
    let lost = with(|runtime| {
        let thread = runtime.current();
        let depth = thread.frames.depth();
        let lost = |store: &&InFlight| store.depth >= depth;
        let lost = thread.in_flight.iter().find(lost);
        lost.map(|store| store.store.access)
    });
    if let Some(access) = lost {
        report(Problem::Lost, access);
    }
}
