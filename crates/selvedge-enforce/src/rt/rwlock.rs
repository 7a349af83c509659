//! Read-write locks.

use core::ffi::c_int;

use super::event::{event, hidden};
use super::stub::stubs;
use super::sys;
use super::thread;

stubs![
    "__wrap_pthread_rwlock_init" => init,
    "__wrap_pthread_rwlock_destroy" => destroy,
    "__wrap_pthread_rwlock_rdlock" => read_lock,
    "__wrap_pthread_rwlock_tryrdlock" => try_read_lock,
    "__wrap_pthread_rwlock_timedrdlock" => timed_read_lock,
    "__wrap_pthread_rwlock_clockrdlock" => clock_read_lock,
    "__wrap_pthread_rwlock_wrlock" => write_lock,
    "__wrap_pthread_rwlock_trywrlock" => try_write_lock,
    "__wrap_pthread_rwlock_timedwrlock" => timed_write_lock,
    "__wrap_pthread_rwlock_clockwrlock" => clock_write_lock,
    "__wrap_pthread_rwlock_unlock" => unlock,
];

/// Where glibc keeps the writing thread.
const WRITER: usize = 24;

/// Whether waiting for the lock is no event: the thread itself holds it for writing, which is an
/// error at once.
pub(super) fn is_written(lock: usize) -> bool {
    let writer = core::ptr::with_exposed_provenance::<u32>(lock + WRITER);
    // SAFETY: the program says that a lock is there; a bad address faults.
    unsafe { writer.read_volatile() == thread::number() }
}

#[inline(always)]
fn take(lock: usize, operation: impl FnOnce() -> c_int) -> c_int {
    if thread::current().active != 0 && is_written(lock) {
        return operation();
    }
    event(operation)
}

extern "C" fn init(lock: usize, attributes: usize) -> c_int {
    // SAFETY: as the program asks, here and below.
    hidden(|| unsafe { sys::pthread_rwlock_init(lock, attributes) })
}

extern "C" fn destroy(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_destroy(lock) })
}

extern "C" fn read_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe { sys::pthread_rwlock_rdlock(lock) })
}

extern "C" fn try_read_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_tryrdlock(lock) })
}

extern "C" fn timed_read_lock(lock: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe {
        sys::pthread_rwlock_timedrdlock(lock, deadline)
    })
}

extern "C" fn clock_read_lock(lock: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe {
        sys::pthread_rwlock_clockrdlock(lock, clock, deadline)
    })
}

extern "C" fn write_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe { sys::pthread_rwlock_wrlock(lock) })
}

extern "C" fn try_write_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_trywrlock(lock) })
}

extern "C" fn timed_write_lock(lock: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe {
        sys::pthread_rwlock_timedwrlock(lock, deadline)
    })
}

extern "C" fn clock_write_lock(lock: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    take(lock, || unsafe {
        sys::pthread_rwlock_clockwrlock(lock, clock, deadline)
    })
}

extern "C" fn unlock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_unlock(lock) })
}
