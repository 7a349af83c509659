//! Values with a reference count.
//!
//! Increments and decrements of a count commute; their order only decides which thread drops the value. So they are no
//! events as long as no thread reads the count, and dropping the value has no effect that others can see. As soon as
//! one of these happens, the search starts over, and the counts of values created at that place are atomics.

use selvedge_core::objects::FREE;
use selvedge_core::op::Rmw;
use selvedge_core::{
    Failure, FailureKind, Function, Location, MemoryOrder, Op, Site, ThreadId, Width,
};

use super::engine::{active, host, in_execution, visible};
use super::place::New;
use super::state::State;
use super::stop::{inconsistent, start_over};
use super::thread::Destructor;

/// The state of one such value.
#[derive(Debug)]
pub(crate) struct Shared {
    count: usize,
    site: Site,
    /// Where its count is, if that is an atomic.
    counter: Option<Location>,
    /// The clock that happens before its end: the join of the owners' clocks when they let go.
    clock: Vec<u32>,
}

/// The result of a decrement for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    /// Others still own the value.
    No,
    /// The caller drops the value, and calls [`dropped`] afterwards if this says so.
    Yes { guarded: bool },
}

const WIDTH: Width = Width(8);

/// A value begins its life at `address`.
pub(crate) fn begin(address: usize, site: Site) {
    host(|state| {
        let counter = state.counts(site).then(|| {
            let new = New {
                what: "reference count",
                site,
                initial: 1,
                pointers: false,
            };
            state.create(new).1
        });
        let shared = Shared {
            count: 1,
            site,
            counter,
            clock: Vec::new(),
        };
        state.shared.insert(address, shared);
    });
}

/// One more owner.
pub(crate) fn increment(address: usize, site: Site) {
    if !active() {
        return;
    }
    let counter = host(|state| {
        let shared = state.shared.get_mut(&address)?;
        shared.count += 1;
        shared.counter
    });
    if let Some(at) = counter {
        visible(update(at, Rmw::Add(1), MemoryOrder::Relaxed), site);
    }
}

/// One owner less.
pub(crate) fn decrement(address: usize, site: Site) -> Last {
    let plain = Last::Yes { guarded: false };
    if !active() {
        return plain;
    }
    let known = host(|state| {
        let shared = state.shared.get_mut(&address)?;
        shared.count = shared.count.saturating_sub(1);
        Some((shared.counter, shared.count))
    });
    match known {
        None => plain,
        Some((None, count)) => host(|state| state.let_go(address, count == 0)),
        Some((Some(at), _)) => {
            let read = visible(update(at, Rmw::Sub(1), MemoryOrder::Release), site).read;
            if read != 1 {
                return Last::No;
            }
            let order = MemoryOrder::Acquire;
            visible(Op::Fence { order }, site);
            host(|state| {
                state.shared.remove(&address);
                state.current().destructors.push(Destructor::Counted);
            });
            Last::Yes { guarded: true }
        }
    }
}

/// The value was dropped.
pub(crate) fn dropped() {
    host(State::leave_destructor);
}

/// The count, which from now on is an atomic.
pub(crate) fn count(address: usize, order: MemoryOrder, site: Site) -> usize {
    match counter(address) {
        None => host(|state| state.shared.get(&address).map_or(1, |shared| shared.count)),
        Some(at) => visible(Op::Load { at, order }, site).read as usize,
    }
}

/// Lets go of the value if nobody else owns it.
pub(crate) fn take(address: usize, site: Site) -> bool {
    let alone = match counter(address) {
        None => host(|state| {
            state
                .shared
                .get(&address)
                .is_none_or(|shared| shared.count == 1)
        }),
        Some(at) => {
            let rmw = Rmw::CompareExchange {
                expected: 1,
                desired: FREE,
            };
            let alone = visible(update(at, rmw, MemoryOrder::Relaxed), site)
                .wrote
                .is_some();
            if alone {
                let order = MemoryOrder::Acquire;
                visible(Op::Fence { order }, site);
            }
            alone
        }
    };
    if alone {
        host(|state| state.shared.remove(&address));
    }
    alone
}

/// The atomic that counts the owners of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    at: Location,
    site: Site,
}

/// The count of a value, which from now on is an atomic.
pub(crate) fn count_of(address: usize) -> Counter {
    let Some(at) = counter(address) else {
        inconsistent()
    };
    let site = host(|state| state.shared.get(&address).map(|shared| shared.site));
    Counter {
        at,
        site: site.unwrap_or(Site(0)),
    }
}

/// The count of a value that is not there yet.
pub(crate) fn unborn(site: Site) -> Counter {
    let new = New {
        what: "reference count",
        site,
        initial: 0,
        pointers: false,
    };
    let at = host(|state| state.create(new).1);
    Counter { at, site }
}

/// The life of a value with `counter` begins at `address`.
pub(crate) fn born(counter: Counter, address: usize, site: Site) {
    note(counter, address);
    let (at, order) = (counter.at, MemoryOrder::Release);
    visible(
        Op::Store {
            at,
            value: 1,
            order,
        },
        site,
    );
}

/// One more owner of a value that may have been dropped. Whether it is still there.
pub(crate) fn revive(counter: &Counter, address: usize, site: Site) -> bool {
    let (at, order) = (counter.at, MemoryOrder::Relaxed);
    let mut read = visible(Op::Load { at, order }, site).read;
    while read != 0 && read != FREE {
        let rmw = Rmw::CompareExchange {
            expected: read,
            desired: read + 1,
        };
        let outcome = visible(update(at, rmw, MemoryOrder::Acquire), site);
        if outcome.wrote.is_some() {
            note(*counter, address);
            return true;
        }
        read = outcome.read;
    }
    false
}

/// How many owners that value has.
pub(crate) fn owners(counter: &Counter, site: Site) -> usize {
    let (at, order) = (counter.at, MemoryOrder::Relaxed);
    visible(Op::Load { at, order }, site).read as usize
}

/// Notes the counter of the value at `address`, for a reference that becomes a raw pointer.
pub(crate) fn keep(address: usize, counter: Counter) {
    if active() {
        host(|state| state.raw_weaks.insert(address, counter));
    }
}

/// The note for `address`.
pub(crate) fn kept(address: usize) -> Option<Counter> {
    let active = active();
    active.then(|| host(|state| state.raw_weaks.get(&address).copied()))?
}

/// Notes an owner.
fn note(counter: Counter, address: usize) {
    host(|state| {
        let known = state.shared.entry(address).or_insert_with(|| Shared {
            count: 0,
            site: counter.site,
            counter: Some(counter.at),
            clock: Vec::new(),
        });
        known.count += 1;
    });
}

/// Whether something is so: a thread has ended, a lock is poisoned. As long as nobody asks, changes of it are no
/// events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flag {
    at: Option<Location>,
    /// Where the thread or the lock is created.
    pub(crate) site: Site,
}

impl Flag {
    /// The flag of a thread or lock that is created at `site`. It is not set.
    pub(crate) fn new(what: &'static str, site: Site) -> Flag {
        let at = host(|state| {
            state.counts(site).then(|| {
                let new = New {
                    what,
                    site,
                    initial: 0,
                    pointers: false,
                };
                state.create(new).1
            })
        });
        Flag { at, site }
    }

    /// Whether it is an event that this changes.
    pub(crate) fn is_visible(self) -> bool {
        self.at.is_some()
    }

    pub(crate) fn set(self, value: bool, order: MemoryOrder, site: Site) {
        if let Some(at) = self.at.filter(|_| active()) {
            let value = value.into();
            visible(Op::Store { at, value, order }, site);
        }
    }

    /// Whether it is so, if changes of it are events.
    pub(crate) fn get(self, site: Site) -> Option<bool> {
        let at = self.at.filter(|_| in_execution())?;
        let order = MemoryOrder::Relaxed;
        Some(visible(Op::Load { at, order }, site).read != 0)
    }

    /// The same for a thread that could not know otherwise. If none has asked before, the search starts over.
    /// `None` if the execution is over.
    pub(crate) fn ask(self, site: Site) -> Option<bool> {
        if self.at.is_none() && in_execution() {
            start_over(|state| {
                state.counted.insert(self.site);
            })
        }
        self.get(site)
    }
}

/// The atomic that holds the count. If there is none, the search starts over with one, unless it is
/// over.
fn counter(address: usize) -> Option<Location> {
    if !active() {
        return None;
    }
    let known = host(|state| {
        let shared = state.shared.get(&address)?;
        Some((shared.counter, shared.site))
    });
    match known {
        None => None,
        Some((counter @ Some(_), _)) => counter,
        Some((None, site)) => {
            if !in_execution() {
                return None;
            }
            start_over(|state| {
                state.counted.insert(site);
            })
        }
    }
}

fn update(at: Location, rmw: Rmw, order: MemoryOrder) -> Op {
    Op::Update {
        at,
        function: Function::memory(WIDTH, rmw),
        order,
        failure: MemoryOrder::Relaxed,
    }
}

impl State {
    /// The running thread lets go of a value whose count is no event.
    fn let_go(&mut self, address: usize, last: bool) -> Last {
        if last {
            // Values of other `Arc`s that the thread has let go of so far are not part of this one.
            self.note_owners();
        }
        let running = self.running;
        let Some(shared) = self.shared.get_mut(&address) else {
            return Last::Yes { guarded: false };
        };
        let thread = &mut self.threads[running];
        if !last {
            let own = thread.counted(running);
            merge(&mut shared.clock, &thread.clock);
            // The actions since its last event happen before the end as well.
            if shared.clock.len() <= running {
                shared.clock.resize(running + 1, 0);
            }
            shared.clock[running] = shared.clock[running].max(own + 1);
            return Last::No;
        }
        let Some(shared) = self.shared.remove(&address) else {
            return Last::Yes { guarded: false };
        };
        let own = thread.counted(running);
        thread.destructors.push(Destructor::Uncounted {
            created: shared.site,
            outer_clock: thread.clock.clone(),
        });
        merge(&mut thread.clock, &shared.clock);
        if let Some(count) = thread.clock.get_mut(running) {
            *count = own;
        }
        Last::Yes { guarded: true }
    }

    fn leave_destructor(&mut self) {
        // Values of other `Arc`s that were let go of in the destructor are ordered after its owners.
        self.note_owners();
        let thread = &mut self.threads[self.running];
        if let Some(Destructor::Uncounted { outer_clock, .. }) = thread.destructors.pop() {
            thread.clock = outer_clock;
        }
    }

    /// A value that nothing can drop any more.
    pub(super) fn leak(&self) -> Option<Failure> {
        let sites = self.shared.values().map(|shared| (shared.site, "Arc"));
        let tracked = self.tracked.values().map(|&(what, site)| (site, what));
        let (site, what) = sites.chain(tracked).min()?;
        Some(Failure {
            kind: FailureKind::Leak,
            message: format!("the {what} created here is never dropped"),
            thread: ThreadId::MAIN,
            site,
            other: None,
        })
    }
}

pub(super) fn merge(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}
