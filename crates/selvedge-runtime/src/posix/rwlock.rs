//! Read-write locks.

use std::ffi::c_int;

use libc::{EBUSY, EDEADLK, EINVAL, ETIMEDOUT};
use selvedge_core::MemoryOrder::{Acquire, Release};
use selvedge_core::objects::{FREE, ObjectFunction};

use super::clock;
use super::object::Object;
use super::program::{store_word, wipe};
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
    Object::new(address, 8, "read-write lock")
}

fn held(lock: Object) -> Option<Held> {
    local(|local| local.find(lock.address).copied())
}

fn writes(lock: Object) -> bool {
    held(lock).is_some_and(|held| !held.shared)
}

fn acquire(lock: Object, mode: Mode) -> c_int {
    if writes(lock) {
        return EDEADLK;
    }
    lock.step(mode.wait, Acquire);
    local(|local| local.hold(lock.address, mode.shared));
    0
}

fn attempt(lock: Object, mode: Mode) -> c_int {
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

extern "C" fn pthread_rwlock_init(address: usize, _attributes: usize) -> c_int {
    let lock = rwlock(address);
    local(|local| local.forget(address));
    current::check_range(address, SIZE, lock.site);
    lock.initialise(FREE as u64);
    wipe(address + 8, SIZE - 8);
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

extern "C" fn pthread_rwlockattr_destroy(_attributes: usize) -> c_int {
    0
}

extern "C" fn pthread_rwlockattr_setpshared(_attributes: usize, _shared: c_int) -> c_int {
    0
}

extern "C" fn pthread_rwlockattr_setkind_np(_attributes: usize, _kind: c_int) -> c_int {
    0
}
