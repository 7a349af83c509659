//! Mutexes and spin locks.

use core::ffi::c_int;

use super::event::{event, hidden};
use super::stub::stubs;
use super::sys;
use super::thread;

stubs![
    "__wrap_pthread_mutex_init" => init,
    "__wrap_pthread_mutex_destroy" => destroy,
    "__wrap_pthread_mutex_lock" => lock,
    "__wrap_pthread_mutex_trylock" => try_lock,
    "__wrap_pthread_mutex_timedlock" => timed_lock,
    "__wrap_pthread_mutex_clocklock" => clock_lock,
    "__wrap_pthread_mutex_unlock" => unlock,
    "__wrap_pthread_spin_init" => spin_init,
    "__wrap_pthread_spin_destroy" => spin_destroy,
    "__wrap_pthread_spin_lock" => spin_lock,
    "__wrap_pthread_spin_trylock" => spin_try_lock,
    "__wrap_pthread_spin_unlock" => spin_unlock,
];

/// Where glibc keeps what is asked for below.
const DEPTH: usize = 4;
const OWNER: usize = 8;
const KIND: usize = 16;

fn field(mutex: usize, at: usize) -> u32 {
    let field = core::ptr::with_exposed_provenance::<u32>(mutex + at);
    // SAFETY: the program says that a mutex is there; a bad address faults.
    unsafe { field.read_volatile() }
}

/// How often the running thread holds a mutex that knows its owner; a normal mutex does not have to
/// know.
fn depth(mutex: usize) -> u32 {
    match field(mutex, KIND) & 3 {
        0 | 3 => 0,
        _ if field(mutex, OWNER) != thread::number() => 0,
        1 => field(mutex, DEPTH),
        _ => 1,
    }
}

/// Whether taking the mutex is no event, since the thread holds it already.
pub(super) fn is_taken_again(mutex: usize) -> bool {
    depth(mutex) > 0
}

/// Whether unlocking the mutex is no event: only the last of several unlocks gives it back, and
/// nobody gives back what he does not hold.
pub(super) fn is_kept(mutex: usize) -> bool {
    let knows_owner = !matches!(field(mutex, KIND) & 3, 0 | 3);
    knows_owner && depth(mutex) != 1
}

#[inline(always)]
fn take(mutex: usize, lock: impl FnOnce() -> c_int) -> c_int {
    if thread::current().active != 0 && is_taken_again(mutex) {
        return lock();
    }
    event(lock)
}

pub(super) extern "C" fn init(mutex: usize, attributes: usize) -> c_int {
    // SAFETY: as the program asks, here and below.
    hidden(|| unsafe { sys::pthread_mutex_init(mutex, attributes) })
}

pub(super) extern "C" fn destroy(mutex: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_mutex_destroy(mutex) })
}

pub(super) extern "C" fn lock(mutex: usize) -> c_int {
    // SAFETY: as above.
    take(mutex, || unsafe { sys::pthread_mutex_lock(mutex) })
}

pub(super) extern "C" fn try_lock(mutex: usize) -> c_int {
    // SAFETY: as above.
    take(mutex, || unsafe { sys::pthread_mutex_trylock(mutex) })
}

pub(super) extern "C" fn timed_lock(mutex: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(mutex, || unsafe {
        sys::pthread_mutex_timedlock(mutex, deadline)
    })
}

extern "C" fn clock_lock(mutex: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(mutex, || unsafe {
        sys::pthread_mutex_clocklock(mutex, clock, deadline)
    })
}

pub(super) extern "C" fn unlock(mutex: usize) -> c_int {
    // SAFETY: as above.
    let unlock = || unsafe { sys::pthread_mutex_unlock(mutex) };
    if thread::current().active != 0 && is_kept(mutex) {
        return unlock();
    }
    event(unlock)
}

extern "C" fn spin_init(lock: usize, shared: c_int) -> c_int {
    // SAFETY: as above.
    hidden(|| unsafe { sys::pthread_spin_init(lock, shared) })
}

extern "C" fn spin_destroy(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_spin_destroy(lock) })
}

extern "C" fn spin_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_spin_lock(lock) })
}

extern "C" fn spin_try_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_spin_trylock(lock) })
}

extern "C" fn spin_unlock(lock: usize) -> c_int {
    // SAFETY: as above.
    let result = event(|| unsafe { sys::pthread_spin_unlock(lock) });
    // Unlocking is only a store.
    thread::current().dirty = 1;
    result
}
