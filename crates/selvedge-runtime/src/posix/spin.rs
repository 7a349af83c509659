//! Spin locks: mutexes that the program promises to hold briefly.

use std::ffi::c_int;

use libc::EBUSY;
use selvedge_core::MemoryOrder::Acquire;
use selvedge_core::objects::{FREE, ObjectFunction};

use super::object::Object;
use super::state::local;
use crate::current;
use crate::problem::PLACE;

entry_points![
    pthread_spin_init(2),
    pthread_spin_destroy(1),
    pthread_spin_lock(1),
    pthread_spin_trylock(1),
    pthread_spin_unlock(1),
];

fn spin_lock(address: usize) -> Object {
    Object::new(address, 4, "spin lock")
}

extern "C" fn pthread_spin_init(address: usize, _shared: c_int) -> c_int {
    local(|local| local.forget(address));
    spin_lock(address).initialise(FREE as u64);
    0
}

extern "C" fn pthread_spin_destroy(address: usize) -> c_int {
    spin_lock(address).destroy(|value| value != FREE, "that is locked");
    local(|local| local.forget(address));
    0
}

extern "C" fn pthread_spin_lock(address: usize) -> c_int {
    let owner = current::thread();
    spin_lock(address).step(ObjectFunction::MutexLock { owner }, Acquire);
    local(|local| local.hold(address, false));
    0
}

extern "C" fn pthread_spin_trylock(address: usize) -> c_int {
    let owner = current::thread();
    current::looks_at_lock();
    let outcome = spin_lock(address).step(ObjectFunction::MutexTryLock { owner }, Acquire);
    if outcome.wrote.is_none() {
        return EBUSY;
    }
    local(|local| local.hold(address, false));
    0
}

extern "C" fn pthread_spin_unlock(address: usize) -> c_int {
    let lock = spin_lock(address);
    if local(|local| local.find(address).is_none()) {
        lock.misuse(format_args!(
            "unlock of {PLACE}, a spin lock that the thread does not hold"
        ));
    }
    local(|local| local.drop_hold(address));
    lock.store(FREE);
    0
}
