//! Locales, of which there is one, and messages in it.

use std::ffi::{CStr, c_char, c_int};

use libc::{ENOENT, ERANGE};

use super::program::{self, set_errno, text};
use super::{bytes, host, strings};
use crate::current;

entry_points![
    setlocale(2),
    newlocale(3),
    __newlocale(3),
    freelocale(1),
    __freelocale(1),
    duplocale(1),
    __duplocale(1),
    uselocale(1),
    __uselocale(1),
    strerror(1),
    strerror_r(3),
    __xpg_strerror_r(3),
    strsignal(1),
];

/// The handle of the locale of the process.
const GLOBAL: usize = usize::MAX;

/// Whether the string at `name`, which is read, names the one locale.
fn is_known(name: usize) -> bool {
    strings::read_length(name, current::site());
    ["", "C", "POSIX"].contains(&text(name).as_str())
}

/// There is one locale, which cannot be changed.
extern "C" fn setlocale(_category: c_int, name: usize) -> usize {
    if name == 0 || is_known(name) {
        c"C".as_ptr().expose_provenance()
    } else {
        0
    }
}

extern "C" fn newlocale(_categories: c_int, name: usize, _base: usize) -> usize {
    if is_known(name) {
        host::locale()
    } else {
        set_errno(ENOENT);
        0
    }
}

extern "C" fn __newlocale(categories: c_int, name: usize, base: usize) -> usize {
    newlocale(categories, name, base)
}

extern "C" fn freelocale(_locale: usize) {}

extern "C" fn __freelocale(_locale: usize) {}

extern "C" fn duplocale(_locale: usize) -> usize {
    host::locale()
}

extern "C" fn __duplocale(locale: usize) -> usize {
    duplocale(locale)
}

/// All locales are the same, so that it does not matter which one is in use.
extern "C" fn uselocale(_locale: usize) -> usize {
    GLOBAL
}

extern "C" fn __uselocale(locale: usize) -> usize {
    uselocale(locale)
}

/// The text of an error number: a constant of the host's. Others would be written to a buffer.
fn message(number: c_int) -> &'static CStr {
    match host::error_message(number) {
        Some(message) => message,
        None => current::refuse(
            String::from("the message of an unknown error number"),
            current::site(),
        ),
    }
}

extern "C" fn strerror(number: c_int) -> *const c_char {
    message(number).as_ptr()
}

extern "C" fn strerror_r(number: c_int, _buffer: usize, _size: usize) -> *const c_char {
    message(number).as_ptr()
}

extern "C" fn __xpg_strerror_r(number: c_int, buffer: usize, size: usize) -> c_int {
    let site = current::site();
    let message = message(number);
    let length = message.count_bytes();
    let fits = length.min(size.saturating_sub(1));
    if size > 0 {
        bytes::write(buffer, &message.to_bytes()[..fits], site);
        program::write::<u8>(buffer + fits, 0, site);
    }
    if fits < length { ERANGE } else { 0 }
}

extern "C" fn strsignal(number: c_int) -> *const c_char {
    match number {
        // SAFETY: returns a constant for every signal that has a name.
        1..=31 => unsafe { libc::strsignal(number) },
        _ => current::refuse(
            String::from("the description of an unknown signal"),
            current::site(),
        ),
    }
}
