//! Unnamed semaphores.

use std::ffi::c_int;

use libc::{EAGAIN, EINVAL, EOVERFLOW, ETIMEDOUT};
use selvedge_core::MemoryOrder::{Acquire, Release};
use selvedge_core::Site;
use selvedge_core::objects::ObjectFunction;

use super::clock;
use super::object::Object;
use super::program::{error, store_int};

entry_points![
    sem_init(3),
    sem_destroy(1),
    sem_wait(1),
    sem_trywait(1),
    sem_timedwait(2),
    sem_clockwait(3),
    sem_post(1),
    sem_getvalue(2),
    selvedge_semaphore_takes(2),
];

const SIZE: usize = 32;
const LARGEST: u32 = c_int::MAX as u32;

fn semaphore(address: usize) -> Object {
    Object::new(address, SIZE, "semaphore")
}

fn timed_wait(semaphore: Object, clock: c_int, deadline: usize) -> c_int {
    let Some(deadline) = clock::deadline(clock, deadline, semaphore.site) else {
        return error(EINVAL);
    };
    if semaphore
        .step(ObjectFunction::SemaphoreTryWait, Acquire)
        .wrote
        .is_some()
    {
        return 0;
    }
    clock::pass(deadline);
    error(ETIMEDOUT)
}

extern "C" fn sem_init(address: usize, _shared: c_int, value: u32) -> c_int {
    if value > LARGEST {
        return error(EINVAL);
    }
    semaphore(address).initialise(value.into());
    0
}

extern "C" fn sem_destroy(address: usize) -> c_int {
    semaphore(address).destroy(|_| false, "");
    0
}

extern "C" fn sem_wait(address: usize) -> c_int {
    semaphore(address).step(ObjectFunction::SemaphoreWait, Acquire);
    0
}

extern "C" fn sem_trywait(address: usize) -> c_int {
    match semaphore(address)
        .step(ObjectFunction::SemaphoreTryWait, Acquire)
        .wrote
    {
        Some(_) => 0,
        None => error(EAGAIN),
    }
}

/// An attempt of a thread that may be cancelled while it waits.
extern "C" fn selvedge_semaphore_takes(address: usize, site: usize) -> c_int {
    let semaphore = semaphore(address).seen_from(Site(site as u64));
    let outcome = semaphore.step(ObjectFunction::SemaphoreTryWait, Acquire);
    outcome.wrote.is_some().into()
}

extern "C" fn sem_timedwait(address: usize, deadline: usize) -> c_int {
    timed_wait(semaphore(address), libc::CLOCK_REALTIME, deadline)
}

extern "C" fn sem_clockwait(address: usize, clock: c_int, deadline: usize) -> c_int {
    timed_wait(semaphore(address), clock, deadline)
}

extern "C" fn sem_post(address: usize) -> c_int {
    let outcome = semaphore(address).step(ObjectFunction::SemaphorePost, Release);
    if outcome.read >= LARGEST.into() {
        error(EOVERFLOW)
    } else {
        0
    }
}

extern "C" fn sem_getvalue(address: usize, value: usize) -> c_int {
    let semaphore = semaphore(address);
    let count = semaphore.load();
    store_int(value, count as c_int, semaphore.site);
    0
}
