//! Read-write locks.

use core::ffi::c_int;

use super::event::{event, hidden};
use super::stub::stubs;
use super::sys;

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
    event(|| unsafe { sys::pthread_rwlock_rdlock(lock) })
}

extern "C" fn try_read_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_tryrdlock(lock) })
}

extern "C" fn timed_read_lock(lock: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_timedrdlock(lock, deadline) })
}

extern "C" fn clock_read_lock(lock: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_clockrdlock(lock, clock, deadline) })
}

extern "C" fn write_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_wrlock(lock) })
}

extern "C" fn try_write_lock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_trywrlock(lock) })
}

extern "C" fn timed_write_lock(lock: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_timedwrlock(lock, deadline) })
}

extern "C" fn clock_write_lock(lock: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_clockwrlock(lock, clock, deadline) })
}

extern "C" fn unlock(lock: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::pthread_rwlock_unlock(lock) })
}
