//! C11's `<threads.h>`, in terms of the POSIX functions.

use std::ffi::{c_int, c_uint};

use libc::{EBUSY, ENOMEM, ETIMEDOUT};

use super::program::{check_not_null, store_int};
use super::{clock, condition, key, mutex, thread};
use crate::current;

entry_points![
    thrd_create(3),
    thrd_join(2),
    thrd_detach(1),
    thrd_current(0),
    thrd_equal(2),
    thrd_yield(0),
    thrd_sleep(2),
    mtx_init(2),
    mtx_destroy(1),
    mtx_lock(1),
    mtx_trylock(1),
    mtx_timedlock(2),
    mtx_unlock(1),
    cnd_init(1),
    cnd_destroy(1),
    cnd_wait(2),
    cnd_timedwait(3),
    cnd_signal(1),
    cnd_broadcast(1),
    tss_create(2),
    tss_delete(1),
    tss_get(1),
    tss_set(2),
];

const SUCCESS: c_int = 0;
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;
const MTX_RECURSIVE: c_int = 1;

fn status(number: c_int) -> c_int {
    match number {
        0 => SUCCESS,
        EBUSY => BUSY,
        ENOMEM => NO_MEMORY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

extern "C" fn thrd_create(result: usize, start: usize, argument: usize) -> c_int {
    thread::create(result, start, argument, false, current::site());
    SUCCESS
}

extern "C" fn thrd_join(handle: usize, result: usize) -> c_int {
    let site = current::site();
    match thread::join(handle, site) {
        Ok(value) => {
            if result != 0 {
                store_int(result, value as c_int, site);
            }
            SUCCESS
        }
        Err(number) => status(number),
    }
}

extern "C" fn thrd_detach(handle: usize) -> c_int {
    thread::detach(handle, current::site());
    SUCCESS
}

extern "C" fn thrd_current() -> usize {
    thread::handle(current::thread())
}

extern "C" fn thrd_equal(one: usize, other: usize) -> c_int {
    (one == other).into()
}

extern "C" fn thrd_yield() {}

extern "C" fn thrd_sleep(duration: usize, _remaining: usize) -> c_int {
    match clock::sleep_at(libc::CLOCK_REALTIME, 0, duration) {
        0 => 0,
        _ => -2,
    }
}

extern "C" fn mtx_init(address: usize, kind: c_int) -> c_int {
    let kind = if kind & MTX_RECURSIVE != 0 {
        libc::PTHREAD_MUTEX_RECURSIVE
    } else {
        0
    };
    mutex::initialise(mutex::mutex(address), kind);
    SUCCESS
}

extern "C" fn mtx_destroy(address: usize) {
    mutex::destroy(mutex::mutex(address));
}

extern "C" fn mtx_lock(address: usize) -> c_int {
    status(mutex::lock(mutex::mutex(address)))
}

extern "C" fn mtx_trylock(address: usize) -> c_int {
    status(mutex::try_lock(mutex::mutex(address)))
}

extern "C" fn mtx_timedlock(address: usize, deadline: usize) -> c_int {
    let mutex = mutex::mutex(address);
    status(mutex::timed_lock(mutex, libc::CLOCK_REALTIME, deadline))
}

extern "C" fn mtx_unlock(address: usize) -> c_int {
    status(mutex::unlock(mutex::mutex(address)))
}

extern "C" fn cnd_init(address: usize) -> c_int {
    condition::initialise(condition::condition(address), libc::CLOCK_REALTIME);
    SUCCESS
}

extern "C" fn cnd_destroy(address: usize) {
    condition::destroy(condition::condition(address));
}

extern "C" fn cnd_wait(address: usize, mutex: usize) -> c_int {
    status(condition::wait(
        condition::condition(address),
        mutex::mutex(mutex),
    ))
}

extern "C" fn cnd_timedwait(address: usize, mutex: usize, deadline: usize) -> c_int {
    let (condition, mutex) = (condition::condition(address), mutex::mutex(mutex));
    status(condition::timed_wait(
        condition,
        mutex,
        libc::CLOCK_REALTIME,
        deadline,
    ))
}

extern "C" fn cnd_signal(address: usize) -> c_int {
    condition::signal(condition::condition(address));
    SUCCESS
}

extern "C" fn cnd_broadcast(address: usize) -> c_int {
    condition::broadcast(condition::condition(address));
    SUCCESS
}

extern "C" fn tss_create(result: usize, destructor: usize) -> c_int {
    let site = current::site();
    check_not_null(result, site);
    match key::create(destructor) {
        Some(number) => {
            store_int(result, number.cast_signed(), site);
            SUCCESS
        }
        None => ERROR,
    }
}

extern "C" fn tss_delete(key: c_uint) {
    key::delete(key);
}

extern "C" fn tss_get(key: c_uint) -> usize {
    key::get(key)
}

extern "C" fn tss_set(key: c_uint, value: usize) -> c_int {
    if key::set(key, value) { SUCCESS } else { ERROR }
}
