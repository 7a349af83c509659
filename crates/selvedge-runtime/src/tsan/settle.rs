//! Stores that were announced: when their values are known, and what becomes of them then.
//!
//! A store of the program is *in flight* from its announcement until the check behind its
//! instruction tells that it was made ([`stored`]). Whatever the thread does in between, the store
//! happens at its instruction. A compiler may announce more than it writes, as for a bit field: a
//! store that was made in part is complete when the runtime is entered the next time
//! ([`at_entry`]). So is what the runtime writes on the program's behalf, as `memcpy`, which is
//! *owed*.

use selvedge_core::{FailureKind, MemoryOrder, Op, Site, Value};

use super::plain::perform_store;
use crate::access::{Access, Problem};
use crate::current;
use crate::gate::gate;
use crate::memory;
use crate::problem::report;
use crate::retry;
use crate::runtime::{Deferred, Phase, Runtime, with};
use crate::signals;
use crate::states;

/// A stub found something left over from the thread's last entry.
pub(crate) extern "C" fn at_entry() {
    now();
    if with(|runtime| runtime.simulating) {
        retry::enter();
    }
}

/// Performs the stores that are owed.
pub(crate) fn now() {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).attention = 0 };
    let (expired, phase) = with(|runtime| {
        let expired = std::mem::take(&mut runtime.watchdog.expired);
        if runtime.phase != Phase::Fiber {
            runtime.owed.clear();
        }
        (expired, runtime.phase)
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
    if with(|runtime| runtime.complete_parts()) {
        perform_complete();
    }
    with(|runtime| runtime.settle_owed());
    let owed = |number: usize| with(|runtime| runtime.current().settling.get(number).copied());
    for (store, value) in (0..).map_while(owed) {
        perform(&store, value);
    }
}

impl Deferred {
    /// The value that it has left in memory.
    fn value(&self) -> Value {
        memory::read(self.access.address, self.access.size as u8)
    }
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
    /// The bytes that are going to be written, one bit each, and those that were not written yet.
    bytes: u32,
    left: u32,
    /// The announcement.
    site: usize,
    /// Whether something of what it was announced with was made.
    satisfied: bool,
    /// How many calls the thread was inside of at its announcement.
    depth: usize,
    /// The bytes it has written, once it was made.
    value: Option<Value>,
}

impl InFlight {
    /// The memory it is going to write: address and size.
    pub(crate) fn range(&self) -> (usize, usize) {
        (self.store.access.address, self.store.access.size)
    }
}

/// The running thread is about to make `store`, of which it writes only the bytes in `bytes`.
pub(crate) fn announce(store: Deferred, bytes: u32) {
    with(|runtime| {
        let thread = runtime.current();
        let depth = thread.frames.depth();
        let new = InFlight {
            store,
            bytes,
            left: bytes,
            site: store.access.site,
            satisfied: false,
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
            Some(known) => *known = new,
            None => thread.in_flight.push(new),
        }
    });
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stores = 1 };
}

/// The running thread has written `size` bytes at `address`, and has stores in flight or states are
/// kept.
pub(crate) extern "C" fn stored(address: usize, size: usize) {
    if states::in_use() {
        return states::stored(address, size);
    }
    if let Some((store, value)) = with(|runtime| runtime.only_store(address, size)) {
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).stores = 0 };
        perform(&store, value);
        return;
    }
    let (complete, partial) = with(|runtime| runtime.complete(address, size));
    if complete {
        perform_complete();
    }
    if partial {
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).attention = 1 };
    }
}

/// Performs the stores in flight that were made.
fn perform_complete() {
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
    let made = &mut in_flight[place];
    let (store, value) = (made.store, made.value.take()?);
    match made.left {
        0 => drop(in_flight.remove(place)),
        left => made.bytes = left,
    }
    Some((store, value))
}

impl Runtime {
    /// Takes the only store in flight, if it was made by a write of `size` bytes at `address`.
    #[inline(always)]
    fn only_store(&mut self, address: usize, size: usize) -> Option<(Deferred, Value)> {
        let in_flight = &mut self.threads[self.running].in_flight;
        let [only] = &in_flight[..] else { return None };
        let access = only.store.access;
        if (access.address, access.size) != (address, size) || only.left != only.bytes {
            return None;
        }
        let store = only.store;
        in_flight.clear();
        let value = store.value();
        self.put_back(&store);
        Some((store, value))
    }

    /// Notes which stores in flight are made by a write of `size` bytes at `address`, and puts what
    /// was there before back for them. Tells whether there are any, and whether some are made in part.
    fn complete(&mut self, address: usize, size: usize) -> (bool, bool) {
        let (mut complete, mut partial) = (false, false);
        let mut satisfied = None;
        for store in &mut self.current().in_flight {
            let start = store.store.access.address;
            let from = address.clamp(start, start + 32) - start;
            let to = address.saturating_add(size).clamp(start, start + 32) - start;
            let written = (u64::MAX << from & !(u64::MAX << to)) as u32;
            if store.left & written == 0 {
                continue;
            }
            store.left &= !written;
            complete |= store.left == 0;
            partial |= store.left != 0;
            satisfied = Some(store.site);
        }
        for store in &mut self.current().in_flight {
            store.satisfied |= Some(store.site) == satisfied;
        }
        if complete {
            self.take_values(|store| store.left == 0);
        }
        (complete, partial)
    }

    /// The running thread performs the stores that are owed. The list is kept with the thread: its steps may be
    /// taken back while it does so, so nothing on its stack may own memory.
    fn settle_owed(&mut self) {
        let mut owed = std::mem::take(&mut self.owed);
        let mut settling = std::mem::take(&mut self.current().settling);
        // They may overlap: all values are taken before anything is put back.
        settling.clear();
        settling.extend(owed.iter().map(|store| (*store, store.value())));
        owed.iter().rev().for_each(|store| self.put_back(store));
        owed.clear();
        self.owed = owed;
        self.current().settling = settling;
    }

    /// Stores in flight that were made in part are complete. Tells whether there are any.
    fn complete_parts(&mut self) -> bool {
        self.take_values(|store| store.left != store.bytes && store.value.is_none());
        let mut in_flight = self.current().in_flight.iter();
        in_flight.any(|store| store.value.is_some())
    }

    /// Takes the values of some stores in flight from memory, and puts back what was there before.
    fn take_values(&mut self, which: impl Fn(&InFlight) -> bool) {
        let in_flight = &mut self.current().in_flight;
        let chosen: Vec<usize> = (0..in_flight.len())
            .filter(|&n| which(&in_flight[n]))
            .collect();
        for &n in &chosen {
            in_flight[n].value = Some(in_flight[n].store.value());
        }
        for &n in chosen.iter().rev() {
            let store = self.threads[self.running].in_flight[n].store;
            self.put_back(&store);
        }
    }

    /// A store in flight that was announced inside of this many calls, and seems to have been made
    /// where nobody could see it. gcc announces `x = x` and makes no store: where memory is as
    /// before, there was none.
    fn lost(&mut self, depth: usize) -> Option<Access> {
        let concerned =
            |store: &&InFlight| store.depth >= depth && !store.satisfied && store.value.is_none();
        let in_flight = &self.threads[self.running].in_flight;
        let unseen = in_flight.iter().filter(concerned).find(|store| {
            let Access { address, size, .. } = store.store.access;
            memory::read(address, size as u8) != self.before(&store.store)
        });
        unseen.map(|store| store.store.access)
    }

    /// The contents of memory if a store was not made.
    fn before(&self, store: &Deferred) -> Value {
        let (address, width) = (store.access.address, store.access.size as u8);
        let known = self.locations.known(&self.shadow, address, width);
        known.unwrap_or(store.old)
    }

    /// Puts what was there before a store back into memory.
    fn put_back(&mut self, store: &Deferred) {
        // The memory of an object matters only before its first use.
        if store.object.is_none() {
            let (address, width) = (store.access.address, store.access.size as u8);
            self.undo.bytes(address, width.into());
            memory::write(address, width, self.before(store));
        }
    }

    /// The running thread has announced a store to a range, and touches a location in it before it
    /// is made, if it was not made already.
    pub(crate) fn touches_range(&mut self, address: usize, width: u8) {
        let Some(range) = self.current().open_range else {
            return;
        };
        let size = usize::from(width);
        let from = range.address.clamp(address, address + size) - address;
        let to = (range.address + range.size).clamp(address, address + size) - address;
        let bytes = (u64::MAX << from & !(u64::MAX << to)) as u32;
        if bytes == 0 {
            return;
        }
        let store = Deferred {
            access: Access {
                address,
                size,
                ..range
            },
            order: MemoryOrder::Plain,
            old: memory::read(address, width),
            object: None,
        };
        let thread = self.current();
        thread.in_flight.push(InFlight {
            store,
            bytes,
            left: bytes,
            site: range.site,
            satisfied: true,
            depth: thread.frames.depth(),
            value: None,
        });
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).stores = 1 };
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

/// The running thread ends, and its variables with it.
pub(crate) fn finish() {
    let used = with(|runtime| {
        let thread = runtime.current();
        let end = thread.slot.end;
        match thread.visible_stack < end || !thread.foreign.is_empty() {
            true => runtime.end_frame(end),
            false => Ok(()),
        }
    });
    if let Err((problem, access)) = used {
        report(problem, access);
    }
    check();
}

/// The running thread will do nothing more: nothing of what it did may have gone unseen.
pub(crate) fn check() {
    let problem = with(|runtime| {
        if runtime.settings.stateful || runtime.phase != Phase::Fiber {
            return None;
        }
        let lost = runtime.lost(0).map(|access| (Problem::Lost, access));
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

/// The running thread stops while it has stores in flight: none of them was made yet.
#[cold]
pub(crate) fn pause() {
    if let Some(access) = with(|runtime| runtime.lost(0)) {
        report(Problem::Lost, access);
    }
}

/// The running thread returns from a function: what it has announced inside was made.
#[cold]
pub(crate) fn leave() {
    let lost = with(|runtime| {
        let depth = runtime.current().frames.depth();
        let lost = runtime.lost(depth);
        let thread = runtime.current();
        thread.in_flight.retain(|store| store.depth < depth);
        let waiting = !thread.in_flight.is_empty() || runtime.settings.stateful;
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).stores = usize::from(waiting) };
        lost
    });
    if let Some(access) = lost {
        report(Problem::Lost, access);
    }
}
