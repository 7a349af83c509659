//! Mutexes of all types.
//!
//! A mutex keeps its type where glibc keeps it, because the static initialisers put it there.

use std::ffi::c_int;

use libc::{EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT};
use selvedge_core::MemoryOrder::Acquire;
use selvedge_core::objects::{FREE, ObjectFunction};

use super::attributes::change;
use super::clock;
use super::object::Object;
use super::program::{peek, poke, read, store_int, wipe};
use super::state::local;
use crate::current;
use crate::problem::PLACE;

entry_points![
    pthread_mutex_init(2),
    pthread_mutex_destroy(1),
    pthread_mutex_lock(1),
    pthread_mutex_trylock(1),
    pthread_mutex_timedlock(2),
    pthread_mutex_clocklock(3),
    pthread_mutex_unlock(1),
    pthread_mutexattr_init(1),
    pthread_mutexattr_destroy(1),
    pthread_mutexattr_settype(2),
    pthread_mutexattr_gettype(2),
    pthread_mutexattr_setpshared(2),
    pthread_mutexattr_getpshared(2),
    pthread_mutexattr_setprotocol(2),
    pthread_mutexattr_setprioceiling(2),
    pthread_mutexattr_setrobust(2),
];

const KIND_OFFSET: usize = 16;
const SIZE: usize = 40;
const TYPE_MASK: c_int = 3;
const PROCESS_SHARED: c_int = 0x80;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Normal and adaptive: locking twice waits for ever.
    Normal,
    Recursive,
    ErrorCheck,
}

/// The mutex at `address`.
pub(crate) fn mutex(address: usize) -> Object {
    Object::new(address, SIZE, "mutex")
}

fn kind(mutex: Object) -> Kind {
    match peek::<c_int>(mutex.address + KIND_OFFSET) & TYPE_MASK {
        libc::PTHREAD_MUTEX_RECURSIVE => Kind::Recursive,
        libc::PTHREAD_MUTEX_ERRORCHECK => Kind::ErrorCheck,
        _ => Kind::Normal,
    }
}

/// Begins the life of a mutex of type `kind` (a `PTHREAD_MUTEX_…` constant).
pub(crate) fn initialise(mutex: Object, kind: c_int) {
    mutex.renew(FREE as u64, |value| value != FREE, "that is locked");
    local(|local| local.forget(mutex.address));
    wipe(mutex.address + 8, SIZE - 8);
    poke(mutex.address + KIND_OFFSET, kind);
}

/// Ends its life.
pub(crate) fn destroy(mutex: Object) {
    mutex.destroy(|value| value != FREE, "that is locked");
    local(|local| local.forget(mutex.address));
}

/// Whether the running thread holds it.
pub(crate) fn is_held(mutex: Object) -> bool {
    local(|local| local.find(mutex.address).is_some())
}

/// Waits for it; 0 or an error number.
pub(crate) fn lock(mutex: Object) -> c_int {
    if is_held(mutex) {
        match kind(mutex) {
            Kind::Recursive => return hold(mutex),
            Kind::ErrorCheck => return EDEADLK,
            Kind::Normal => {}
        }
    }
    mutex.step(
        ObjectFunction::MutexLock {
            owner: current::thread(),
        },
        Acquire,
    );
    hold(mutex)
}

/// Takes it if it is free; 0 or an error number.
pub(crate) fn try_lock(mutex: Object) -> c_int {
    if is_held(mutex) {
        return if kind(mutex) == Kind::Recursive {
            hold(mutex)
        } else {
            EBUSY
        };
    }
    current::looks_at_lock();
    let outcome = mutex.step(
        ObjectFunction::MutexTryLock {
            owner: current::thread(),
        },
        Acquire,
    );
    if outcome.wrote.is_some() {
        hold(mutex)
    } else {
        EBUSY
    }
}

/// A lock that gives up at `deadline`. One that succeeds after a while is one that was tried
/// later, so it never waits.
pub(crate) fn timed_lock(mutex: Object, clock: c_int, deadline: usize) -> c_int {
    let Some(deadline) = clock::deadline(clock, deadline, mutex.site) else {
        return EINVAL;
    };
    if is_held(mutex) && kind(mutex) == Kind::ErrorCheck {
        return EDEADLK;
    }
    match try_lock(mutex) {
        EBUSY => {
            clock::pass(deadline);
            ETIMEDOUT
        }
        result => result,
    }
}

/// Gives it back; 0 or an error number.
pub(crate) fn unlock(mutex: Object) -> c_int {
    if !is_held(mutex) {
        if kind(mutex) != Kind::Normal {
            return EPERM;
        }
        mutex.misuse(format_args!(
            "unlock of {PLACE}, a mutex that the thread does not hold"
        ));
    }
    if local(|local| local.drop_hold(mutex.address)) {
        mutex.store(FREE);
    }
    0
}

fn hold(mutex: Object) -> c_int {
    local(|local| local.hold(mutex.address, false));
    0
}

extern "C" fn pthread_mutex_init(address: usize, attributes: usize) -> c_int {
    let kind = if attributes == 0 {
        0
    } else {
        read::<c_int>(attributes, current::site())
    };
    initialise(mutex(address), kind);
    0
}

extern "C" fn pthread_mutex_destroy(address: usize) -> c_int {
    destroy(mutex(address));
    0
}

extern "C" fn pthread_mutex_lock(address: usize) -> c_int {
    lock(mutex(address))
}

extern "C" fn pthread_mutex_trylock(address: usize) -> c_int {
    try_lock(mutex(address))
}

extern "C" fn pthread_mutex_timedlock(address: usize, deadline: usize) -> c_int {
    timed_lock(mutex(address), libc::CLOCK_REALTIME, deadline)
}

extern "C" fn pthread_mutex_clocklock(address: usize, clock: c_int, deadline: usize) -> c_int {
    timed_lock(mutex(address), clock, deadline)
}

extern "C" fn pthread_mutex_unlock(address: usize) -> c_int {
    unlock(mutex(address))
}

extern "C" fn pthread_mutexattr_init(attributes: usize) -> c_int {
    store_int(attributes, 0, current::site());
    0
}

extern "C" fn pthread_mutexattr_destroy(attributes: usize) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_mutexattr_settype(attributes: usize, kind: c_int) -> c_int {
    if !(0..=TYPE_MASK).contains(&kind) {
        return EINVAL;
    }
    let site = current::site();
    let others = read::<c_int>(attributes, site) & !TYPE_MASK;
    store_int(attributes, others | kind, site);
    0
}

extern "C" fn pthread_mutexattr_gettype(attributes: usize, kind: usize) -> c_int {
    let site = current::site();
    store_int(kind, read::<c_int>(attributes, site) & TYPE_MASK, site);
    0
}

extern "C" fn pthread_mutexattr_setpshared(attributes: usize, shared: c_int) -> c_int {
    let site = current::site();
    let others = read::<c_int>(attributes, site) & !PROCESS_SHARED;
    let shared = if shared != 0 { PROCESS_SHARED } else { 0 };
    store_int(attributes, others | shared, site);
    0
}

extern "C" fn pthread_mutexattr_getpshared(attributes: usize, shared: usize) -> c_int {
    let site = current::site();
    let set = read::<c_int>(attributes, site) & PROCESS_SHARED != 0;
    store_int(shared, c_int::from(set), site);
    0
}

extern "C" fn pthread_mutexattr_setprotocol(attributes: usize, _protocol: c_int) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_mutexattr_setprioceiling(attributes: usize, _ceiling: c_int) -> c_int {
    change(attributes, 4)
}

extern "C" fn pthread_mutexattr_setrobust(attributes: usize, robust: c_int) -> c_int {
    if robust != libc::PTHREAD_MUTEX_STALLED {
        current::refuse(
            String::from("robust mutexes (pthread_mutexattr_setrobust)"),
            current::site(),
        );
    }
    change(attributes, 4)
}
