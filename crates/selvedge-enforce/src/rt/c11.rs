//! C11's `<threads.h>`, in terms of the POSIX functions.

use core::ffi::{c_int, c_void};

use super::condition;
use super::mutex;
use super::start;
use super::stub::stubs;
use super::sys;

stubs![
    "__wrap_thrd_create" => create,
    "__wrap_thrd_join" => join,
    "__wrap_mtx_init" => mutex_init,
    "__wrap_mtx_destroy" => mutex_destroy,
    "__wrap_mtx_lock" => lock,
    "__wrap_mtx_trylock" => try_lock,
    "__wrap_mtx_timedlock" => timed_lock,
    "__wrap_mtx_unlock" => unlock,
    "__wrap_cnd_init" => condition_init,
    "__wrap_cnd_destroy" => condition_destroy,
    "__wrap_cnd_wait" => wait,
    "__wrap_cnd_timedwait" => timed_wait,
    "__wrap_cnd_signal" => condition::signal,
    "__wrap_cnd_broadcast" => condition::broadcast,
];

const RECURSIVE: c_int = 1;

/// The C11 number of a result.
fn status(number: c_int) -> c_int {
    match number {
        0 => 0,
        16 => 1,
        12 => 3,
        condition::TIMED_OUT => 4,
        _ => 2,
    }
}

extern "C" fn create(handle: *mut usize, start: sys::Start, argument: *mut c_void) -> c_int {
    status(start::create(handle, 0, start, argument))
}

extern "C" fn join(handle: usize, result: *mut c_int) -> c_int {
    let mut value: usize = 0;
    let number = start::wait_for(handle, (&raw mut value).expose_provenance());
    if !result.is_null() {
        // SAFETY: the program says that a variable is there.
        super::event::hidden(|| unsafe { result.write(value as c_int) });
    }
    status(number)
}

extern "C" fn mutex_init(mutex: usize, kind: c_int) -> c_int {
    // glibc reads the type of a mutex from the attributes' only number.
    let attributes = u32::from(kind & RECURSIVE != 0);
    mutex::init(mutex, (&raw const attributes).expose_provenance())
}

extern "C" fn mutex_destroy(mutex: usize) {
    mutex::destroy(mutex);
}

extern "C" fn lock(mutex: usize) -> c_int {
    status(mutex::lock(mutex))
}

extern "C" fn try_lock(mutex: usize) -> c_int {
    status(mutex::try_lock(mutex))
}

extern "C" fn timed_lock(mutex: usize, deadline: usize) -> c_int {
    status(mutex::timed_lock(mutex, deadline))
}

extern "C" fn unlock(mutex: usize) -> c_int {
    status(mutex::unlock(mutex))
}

extern "C" fn condition_init(condition: usize) -> c_int {
    condition::init(condition, 0)
}

extern "C" fn condition_destroy(condition: usize) {
    condition::destroy(condition);
}

extern "C" fn wait(condition: usize, mutex: usize) -> c_int {
    status(condition::wait(condition, mutex))
}

extern "C" fn timed_wait(condition: usize, mutex: usize, deadline: usize) -> c_int {
    status(condition::timed_wait(condition, mutex, deadline))
}
