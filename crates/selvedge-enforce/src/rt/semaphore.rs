//! Unnamed semaphores.

use core::ffi::c_int;

use super::event::{event, hidden};
use super::stub::stubs;
use super::sys;

stubs![
    "__wrap_sem_init" => init,
    "__wrap_sem_destroy" => destroy,
    "__wrap_sem_wait" => wait,
    "__wrap_sem_trywait" => try_wait,
    "__wrap_sem_timedwait" => timed_wait,
    "__wrap_sem_clockwait" => clock_wait,
    "__wrap_sem_post" => post,
    "__wrap_sem_getvalue" => value,
];

extern "C" fn init(semaphore: usize, shared: c_int, value: u32) -> c_int {
    // SAFETY: as the program asks, here and below.
    hidden(|| unsafe { sys::sem_init(semaphore, shared, value) })
}

extern "C" fn destroy(semaphore: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_destroy(semaphore) })
}

extern "C" fn wait(semaphore: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_wait(semaphore) })
}

extern "C" fn try_wait(semaphore: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_trywait(semaphore) })
}

extern "C" fn timed_wait(semaphore: usize, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_timedwait(semaphore, deadline) })
}

extern "C" fn clock_wait(semaphore: usize, clock: c_int, deadline: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_clockwait(semaphore, clock, deadline) })
}

extern "C" fn post(semaphore: usize) -> c_int {
    // SAFETY: as above.
    event(|| unsafe { sys::sem_post(semaphore) })
}

extern "C" fn value(semaphore: usize, to: *mut c_int) -> c_int {
    let mut value = 0;
    // SAFETY: as above; the result goes to a variable of ours first.
    let result = event(|| unsafe { sys::sem_getvalue(semaphore, &raw mut value) });
    // SAFETY: the program says that a variable is there.
    super::atomic::at_plain(to.expose_provenance(), || unsafe { to.write(value) });
    result
}
