//! Conversions of strings to numbers by functions that do not tell where the number ends.

use std::ffi::{c_char, c_double, c_int, c_long, c_longlong};
use std::ptr::with_exposed_provenance;

use super::host::with_errno;
use super::library::announce_number;
use super::program::{check_not_null, set_errno};
use crate::current;

entry_points![atoi(1), atol(1), atoll(1), atof(1)];

/// Converts with a function of the host's C library, which is given the string and where to put its
/// end.
fn convert<T>(string: usize, convert: impl FnOnce(*const c_char, *mut *mut c_char) -> T) -> T {
    let site = current::site();
    check_not_null(string, site);
    let start = with_exposed_provenance::<c_char>(string);
    let mut stop = std::ptr::null_mut();
    let (result, number) = with_errno(|| convert(start, &raw mut stop));
    announce_number(string, stop.addr(), site);
    if number != 0 {
        set_errno(number);
    }
    result
}

extern "C" fn atoi(string: usize) -> c_int {
    atol(string) as c_int
}

extern "C" fn atol(string: usize) -> c_long {
    // SAFETY: a string of the program and a local for its end.
    convert(string, |start, stop| unsafe {
        libc::strtol(start, stop, 10)
    })
}

extern "C" fn atoll(string: usize) -> c_longlong {
    atol(string)
}

extern "C" fn atof(string: usize) -> c_double {
    // SAFETY: as above.
    convert(string, |start, stop| unsafe { libc::strtod(start, stop) })
}
