//! What is needed of the host's own C library beyond the `libc` crate.

use std::ffi::{c_char, c_int};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use libc::FILE;

use super::format::Arguments;

unsafe extern "C" {
    static stdin: *mut FILE;
    static stdout: *mut FILE;
    static stderr: *mut FILE;
    fn vsnprintf(
        buffer: *mut c_char,
        size: usize,
        format: *const c_char,
        arguments: *mut Arguments,
    ) -> c_int;
    fn vsscanf(text: *const c_char, format: *const c_char, arguments: *mut Arguments) -> c_int;
}

/// The stream that the program knows as `stdin`.
pub(crate) fn standard_input() -> usize {
    // SAFETY: set by the C library before `main` and never again.
    unsafe { stdin }.expose_provenance()
}

/// The stream that the program knows as `stdout`.
pub(crate) fn standard_output() -> usize {
    // SAFETY: as above.
    unsafe { stdout }.expose_provenance()
}

/// The stream that the program knows as `stderr`.
pub(crate) fn standard_error() -> usize {
    // SAFETY: as above.
    unsafe { stderr }.expose_provenance()
}

/// `vsnprintf`.
pub(crate) fn format(buffer: usize, size: usize, format: usize, mut arguments: Arguments) -> c_int {
    // SAFETY: the caller has read every string that the format asks for and checked that the
    // buffer can be written; the argument list is a copy.
    unsafe {
        vsnprintf(
            with_exposed_provenance_mut(buffer),
            size,
            with_exposed_provenance(format),
            &raw mut arguments,
        )
    }
}

/// `vsscanf`.
pub(crate) fn scan(text: usize, format: usize, mut arguments: Arguments) -> c_int {
    // SAFETY: the caller has read both strings; the targets are the program's, and a bad one faults
    // as its own store would.
    unsafe {
        vsscanf(
            with_exposed_provenance(text),
            with_exposed_provenance(format),
            &raw mut arguments,
        )
    }
}
