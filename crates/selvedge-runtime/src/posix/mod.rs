//! The program's libc, as far as the runtime stands in for it: POSIX and C11 threads, memory,
//! strings, output, time.

/// The functions that the stubs inside the program's shared object jump to: name and address.
pub(crate) fn entries() -> Vec<(&'static str, usize)> {
    Vec::new()
}

/// Remembers the state that the program's constructors left behind.
pub(crate) fn booted() {}

/// Back to the state after the constructors; part of every reset of the machine.
pub(crate) fn reset() {}
