//! Just enough of pthreads to start and join threads, until the C library is complete.

use std::ffi::{c_int, c_void};

use selvedge_core::{Op, ThreadId};

use crate::current;

extern "C" fn create(
    thread: *mut usize,
    _attributes: *const c_void,
    start: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    let site = current::site();
    let child = current::spawn(start, argument, site);
    // SAFETY: the program passes a pointer to its variable.
    unsafe { thread.write(child.index() + 1) };
    0
}

extern "C" fn join(thread: usize, result: *mut *mut c_void) -> c_int {
    let site = current::site();
    let child = ThreadId(thread as u32 - 1);
    current::perform(Op::Join { child }, site);
    if !result.is_null() {
        // SAFETY: the program passes a pointer to its variable.
        unsafe { result.write(current::result(child)) };
    }
    0
}

/// The stand-ins.
pub(crate) fn entries() -> Vec<(&'static str, usize)> {
    vec![
        ("pthread_create", create as *const () as usize),
        ("pthread_join", join as *const () as usize),
    ]
}
