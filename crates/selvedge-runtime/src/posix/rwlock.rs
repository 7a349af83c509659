//! Read-write locks.

use std::ffi::c_int;

use libc::{EBUSY, EDEADLK, EINVAL, ETIMEDOUT};
use selvedge_core::MemoryOrder::{Acquire, Release};
use selvedge_core::objects::{FREE, ObjectFunction};

use super::attributes::change;
use super::clock;
use super::object::Object;
use super::program::{peek, poke, read, store_int, store_word, wipe};
use super::state::{Held, local};
use crate::current;
use crate::problem::PLACE;

entry_points![
    pthread_rwlock_init(2),
    pthread_rwlock_destroy(1),
    pthread_rwlock_rdlock(1),
    pthread_rwlock_tryrdlock(1),
    pthread_rwlock_timedrdlock(2),
    pthread_rwlock_clockrdlock(3),
    pthread_rwlock_wrlock(1),
    pthread_rwlock_trywrlock(1),
    pthread_rwlock_timedwrlock(2),
    pthread_rwlock_clockwrlock(3),
    pthread_rwlock_unlock(1),
    pthread_rwlockattr_init(1),
    pthread_rwlockattr_destroy(1),
    pthread_rwlockattr_setpshared(2),
    pthread_rwlockattr_setkind_np(2),
];

const SIZE: usize = 56;
/// Where glibc keeps which side waits for the other; the static initialisers put it there.
const KIND_OFFSET: usize = 48;
/// The one kind that lets readers wait for writers that wait.
const PREFER_WRITER_NONRECURSIVE: c_int = 2;

/// One of the two ways to take the lock.
#[derive(Clone, Copy)]
struct Mode {
    shared: bool,
    wait: ObjectFunction,
    attempt: ObjectFunction,
}

const READ: Mode = Mode {
    shared: true,
    wait: ObjectFunction::ReadLock,
    attempt: ObjectFunction::ReadTryLock,
};
const WRITE: Mode = Mode {
    shared: false,
    wait: ObjectFunction::WriteLock,
    attempt: ObjectFunction::WriteTryLock,
};

fn rwlock(address: usize) -> Object {
    Object::new(address, SIZE, "read-write lock")
}

fn held(lock: Object) -> Option<Held> {
    local(|local| local.find(lock.address).copied())
}

fn writes(lock: Object) -> bool {
    held(lock).is_some_and(|held| !held.shared)
}

fn acquire(lock: Object, mode: Mode) -> c_int {
    check_kind(lock);
    if writes(lock) {
        return EDEADLK;
    }
    lock.step(mode.wait, Acquire);
    local(|local| local.hold(lock.address, mode.shared));
    0
}

/// Readers are let in whether or not a writer waits. With the other kind two readers may wait for each other,
/// and nobody would see it.
fn check_kind(lock: Object) {
    if peek::<c_int>(lock.address + KIND_OFFSET) == PREFER_WRITER_NONRECURSIVE {
        let what = "a read-write lock of kind PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP";
        current::refuse(what.to_owned(), lock.site);
    }
}

fn attempt(lock: Object, mode: Mode) -> c_int {
    check_kind(lock);
    if lock.step(mode.attempt, Acquire).wrote.is_none() {
        return EBUSY;
    }
    local(|local| local.hold(lock.address, mode.shared));
    0
}

fn timed(lock: Object, mode: Mode, clock: c_int, deadline: usize) -> c_int {
    let Some(deadline) = clock::deadline(clock, deadline, lock.site) else {
        return EINVAL;
    };
    if writes(lock) {
        return EDEADLK;
    }
    match attempt(lock, mode) {
        EBUSY => {
            clock::pass(deadline);
            ETIMEDOUT
        }
        result => result,
    }
}

extern "C" fn pthread_rwlock_init(address: usize, attributes: usize) -> c_int {
    let lock = rwlock(address);
    let kind: c_int = match attributes {
        0 => 0,
        _ => read::<[c_int; 2]>(attributes, lock.site)[0],
    };
    local(|local| local.forget(address));
    lock.initialise(FREE as u64);
    wipe(address + 8, SIZE - 8);
    poke(address + KIND_OFFSET, kind);
    0
}

extern "C" fn pthread_rwlock_destroy(address: usize) -> c_int {
    rwlock(address).destroy(|value| value != FREE, "that is locked");
    local(|local| local.forget(address));
    0
}

extern "C" fn pthread_rwlock_rdlock(address: usize) -> c_int {
    acquire(rwlock(address), READ)
}

extern "C" fn pthread_rwlock_tryrdlock(address: usize) -> c_int {
    attempt(rwlock(address), READ)
}

extern "C" fn pthread_rwlock_timedrdlock(address: usize, deadline: usize) -> c_int {
    timed(rwlock(address), READ, libc::CLOCK_REALTIME, deadline)
}

extern "C" fn pthread_rwlock_clockrdlock(address: usize, clock: c_int, deadline: usize) -> c_int {
    timed(rwlock(address), READ, clock, deadline)
}

extern "C" fn pthread_rwlock_wrlock(address: usize) -> c_int {
    acquire(rwlock(address), WRITE)
}

extern "C" fn pthread_rwlock_trywrlock(address: usize) -> c_int {
    attempt(rwlock(address), WRITE)
}

extern "C" fn pthread_rwlock_timedwrlock(address: usize, deadline: usize) -> c_int {
    timed(rwlock(address), WRITE, libc::CLOCK_REALTIME, deadline)
}

extern "C" fn pthread_rwlock_clockwrlock(address: usize, clock: c_int, deadline: usize) -> c_int {
    timed(rwlock(address), WRITE, clock, deadline)
}

extern "C" fn pthread_rwlock_unlock(address: usize) -> c_int {
    let lock = rwlock(address);
    let Some(held) = held(lock) else {
        lock.misuse(format_args!(
            "unlock of {PLACE}, a read-write lock that the thread does not hold"
        ));
    };
    local(|local| local.drop_hold(address));
    if held.shared {
        lock.step(ObjectFunction::ReadUnlock, Release);
    } else {
        lock.store(FREE);
    }
    0
}

extern "C" fn pthread_rwlockattr_init(attributes: usize) -> c_int {
    store_word(attributes, 0, current::site());
    0
}

extern "C" fn pthread_rwlockattr_destroy(attributes: usize) -> c_int {
    change(attributes, 8)
}

extern "C" fn pthread_rwlockattr_setpshared(attributes: usize, _shared: c_int) -> c_int {
    change(attributes, 8)
}

extern "C" fn pthread_rwlockattr_setkind_np(attributes: usize, kind: c_int) -> c_int {
    if !(0..=PREFER_WRITER_NONRECURSIVE).contains(&kind) {
        return EINVAL;
    }
    store_int(attributes, kind, current::site());
    0
}
