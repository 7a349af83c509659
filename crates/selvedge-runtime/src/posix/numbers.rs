//! From strings to numbers.

use std::ffi::{c_char, c_double, c_float, c_int, c_long, c_longlong, c_ulong};
use std::ptr::with_exposed_provenance;

use selvedge_core::Site;

use super::program::{self, check_not_null};
use super::state::local;
use super::strings;
use crate::abi::EntryPoint;
use crate::current;

entry_points![
    strtol(3),
    strtoll(3),
    strtoul(3),
    strtoull(3),
    strtod(2),
    strtof(2),
    atoi(1),
    atol(1),
    atoll(1),
    atof(1),
    __strtod_l(3),
    __strtof_l(3),
    strtod_l(3),
    strtof_l(3),
];

/// Newer headers rename the functions that know binary literals, and some take their `int` size in
/// the name.
pub(crate) fn aliases() -> Vec<EntryPoint> {
    let signed = strtol as *const () as usize;
    let unsigned = strtoul as *const () as usize;
    vec![
        ("__isoc23_strtol", signed, 3),
        ("__isoc23_strtoll", signed, 3),
        ("__isoc23_strtoul", unsigned, 3),
        ("__isoc23_strtoull", unsigned, 3),
        ("strtoimax", signed, 3),
        ("strtoumax", unsigned, 3),
        ("__isoc23_strtoimax", signed, 3),
        ("__isoc23_strtoumax", unsigned, 3),
    ]
}

/// Converts with `convert`, a function of the host's C library that is given the string and where
/// to put its end, and carries over what it does to the end pointer and `errno`.
fn convert<T>(
    string: usize,
    end: usize,
    convert: impl FnOnce(*const c_char, *mut *mut c_char) -> T,
) -> T {
    let site = current::site();
    check_not_null(string, site);
    let start = with_exposed_provenance::<c_char>(string);
    let mut stop = std::ptr::null_mut();
    let (result, number) = with_errno(|| convert(start, &raw mut stop));
    announce(string, stop.addr(), site);
    if end != 0 {
        program::store_word(end, stop.expose_provenance(), site);
    }
    if number != 0 {
        local(|local| local.errno = number);
    }
    result
}

/// The characters up to `stop` were read, and the one that stopped it.
fn announce(string: usize, stop: usize, site: Site) {
    let read = if stop == string {
        strings::length(string).min(1)
    } else {
        stop - string
    };
    current::touch(string, read + 1, false, site);
}

/// Calls into the host's C library and tells what it set `errno` to.
fn with_errno<T>(call: impl FnOnce() -> T) -> (T, c_int) {
    // SAFETY: the host's own `errno`, of this thread.
    let errno = unsafe { &mut *libc::__errno_location() };
    let saved = std::mem::take(errno);
    let result = call();
    (result, std::mem::replace(errno, saved))
}

extern "C" fn strtol(string: usize, end: usize, base: c_int) -> c_long {
    // SAFETY: a string of the program and a local for its end.
    convert(string, end, |start, stop| unsafe {
        libc::strtol(start, stop, base)
    })
}

extern "C" fn strtoll(string: usize, end: usize, base: c_int) -> c_longlong {
    strtol(string, end, base)
}

extern "C" fn strtoul(string: usize, end: usize, base: c_int) -> c_ulong {
    // SAFETY: as above.
    convert(string, end, |start, stop| unsafe {
        libc::strtoul(start, stop, base)
    })
}

extern "C" fn strtoull(string: usize, end: usize, base: c_int) -> c_ulong {
    strtoul(string, end, base)
}

extern "C" fn strtod(string: usize, end: usize) -> c_double {
    // SAFETY: as above.
    convert(string, end, |start, stop| unsafe {
        libc::strtod(start, stop)
    })
}

extern "C" fn strtof(string: usize, end: usize) -> c_float {
    // SAFETY: as above.
    convert(string, end, |start, stop| unsafe {
        libc::strtof(start, stop)
    })
}

// The program cannot change its locale, so the one it passes is the one there is.

extern "C" fn __strtod_l(string: usize, end: usize, _locale: usize) -> c_double {
    strtod(string, end)
}

extern "C" fn __strtof_l(string: usize, end: usize, _locale: usize) -> c_float {
    strtof(string, end)
}

extern "C" fn strtod_l(string: usize, end: usize, _locale: usize) -> c_double {
    strtod(string, end)
}

extern "C" fn strtof_l(string: usize, end: usize, _locale: usize) -> c_float {
    strtof(string, end)
}

extern "C" fn atoi(string: usize) -> c_int {
    strtol(string, 0, 10) as c_int
}

extern "C" fn atol(string: usize) -> c_long {
    strtol(string, 0, 10)
}

extern "C" fn atoll(string: usize) -> c_longlong {
    strtol(string, 0, 10)
}

extern "C" fn atof(string: usize) -> c_double {
    strtod(string, 0)
}
