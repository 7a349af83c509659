//! The program's libc, as far as the runtime stands in for it: POSIX and C11 threads, memory,
//! strings, output, time.

use std::ffi::c_void;

use crate::current;

/// The functions that the stubs inside the program's shared object jump to: name and address.
pub(crate) fn entries() -> Vec<(&'static str, usize)> {
    Vec::new()
}

/// Remembers the state that the program's constructors left behind.
pub(crate) fn booted() {}

/// Back to the state after the constructors; part of every reset of the machine.
pub(crate) fn reset() {}

/// What a thread does when its start routine has returned: runs the destructors of its
/// thread-local data and ends.
pub(crate) extern "C-unwind" fn after_start(result: *mut c_void) -> ! {
    current::finish(result)
}

/// What main does when it has returned: as above, and once all other threads have come to an end
/// it runs the exit handlers.
pub(crate) extern "C-unwind" fn after_main(status: *mut c_void) -> ! {
    current::finish(status)
}
