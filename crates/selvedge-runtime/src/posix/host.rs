//! Functions of the host's own C library that the `libc` crate lacks.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use libc::FILE;

use super::format::Arguments;

unsafe extern "C" {
    fn btowc(byte: c_int) -> c_uint;
    fn wctob(character: c_uint) -> c_int;
    fn strerrordesc_np(number: c_int) -> *const c_char;
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
    // SAFETY: the caller has read both strings and checked the targets; they are large enough if they are the
    // runtime's own.
    unsafe {
        vsscanf(
            with_exposed_provenance(text),
            with_exposed_provenance(format),
            &raw mut arguments,
        )
    }
}

/// Calls into the host's C library and tells what it set `errno` to.
pub(crate) fn with_errno<T>(call: impl FnOnce() -> T) -> (T, c_int) {
    // SAFETY: the host's own `errno`, of this thread.
    let errno = unsafe { &mut *libc::__errno_location() };
    let saved = std::mem::take(errno);
    let result = call();
    (result, std::mem::replace(errno, saved))
}

/// The wide character that a byte stands for.
pub(crate) fn wide_of(byte: u8) -> Option<c_int> {
    // SAFETY: by value only.
    let character = unsafe { btowc(byte.into()) };
    (character != c_uint::MAX).then_some(character.cast_signed())
}

/// The byte of a wide character.
pub(crate) fn byte_of(character: c_int) -> Option<u8> {
    // SAFETY: by value only.
    u8::try_from(unsafe { wctob(character.cast_unsigned()) }).ok()
}

/// The text of an error number, if it is known.
pub(crate) fn error_message(number: c_int) -> Option<&'static CStr> {
    // SAFETY: returns a constant string or null.
    unsafe {
        let message = strerrordesc_np(number);
        (!message.is_null()).then(|| CStr::from_ptr(message))
    }
}

/// The handle of the "C" locale, which is a constant.
pub(crate) fn locale() -> usize {
    // SAFETY: a valid mask and a valid name.
    unsafe { libc::newlocale(libc::LC_ALL_MASK, c"C".as_ptr(), std::ptr::null_mut()) }
        .expose_provenance()
}
