//! The inputs of a program from outside: arguments and environment.
//!
//! The verifier runs the program without arguments and without an environment, so a proof holds for
//! programs that get none. A program that is given something else is stopped before it can use it.

use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicPtr, Ordering};

use super::diverge;
use super::plan;
use super::stub::stubs;
use super::sys;

stubs![
    "__wrap_getenv" => getenv,
    "__wrap_secure_getenv" => secure_getenv,
    "__wrap_setlocale" => setlocale,
    "__wrap_newlocale" => newlocale,
    "__wrap___newlocale" => newlocale,
];

/// The variables that decide a locale without a name, if `LC_ALL` is not set.
const LOCALE: [&CStr; 13] = [
    c"LC_CTYPE",
    c"LC_NUMERIC",
    c"LC_TIME",
    c"LC_COLLATE",
    c"LC_MONETARY",
    c"LC_MESSAGES",
    c"LC_PAPER",
    c"LC_NAME",
    c"LC_ADDRESS",
    c"LC_TELEPHONE",
    c"LC_MEASUREMENT",
    c"LC_IDENTIFICATION",
    c"LANG",
];

/// A variable that a constructor read, before the proof was at hand.
static EARLY: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// The environment as the verifier has it.
pub(super) static NOTHING: AtomicPtr<c_char> = AtomicPtr::new(core::ptr::null_mut());

/// Checks what the program is started with.
pub(super) fn check(count: c_int) {
    if plan::is_free() {
        return;
    }
    if count > 1 {
        diverge::refuse(format_args!(
            "the program was started with arguments, and what was verified is a run without any"
        ));
    }
    let early = EARLY.load(Ordering::Relaxed);
    if !early.is_null() {
        read(early);
    }
}

extern "C" fn getenv(name: *const c_char) -> *const c_char {
    // SAFETY: as the program asks.
    noted(name, unsafe { sys::getenv(name) })
}

extern "C" fn secure_getenv(name: *const c_char) -> *const c_char {
    // SAFETY: as the program asks.
    noted(name, unsafe { sys::secure_getenv(name) })
}

extern "C" fn setlocale(category: c_int, name: *const c_char) -> *const c_char {
    match name.is_null() || is_known(name) {
        // SAFETY: as the program asks.
        true => unsafe { sys::setlocale(category, name) },
        false => core::ptr::null(),
    }
}

extern "C" fn newlocale(categories: c_int, name: *const c_char, base: usize) -> usize {
    match name.is_null() || is_known(name) {
        // SAFETY: as the program asks.
        true => unsafe { sys::newlocale(categories, name, base) },
        false => {
            // SAFETY: a variable of the running thread.
            unsafe { *sys::errno() = sys::ENOENT };
            0
        }
    }
}

/// Whether `name` is one of the names of the only locale that the verifier has. The locale without a name is
/// that one unless the environment says otherwise.
fn is_known(name: *const c_char) -> bool {
    // SAFETY: the string that the program names a locale with.
    let name = unsafe { CStr::from_ptr(name) };
    if name.is_empty() && is_set(c"LC_ALL") != Some(true) {
        let _ = LOCALE.map(is_set);
    }
    name.is_empty() || is_the_locale(name)
}

/// Whether a variable names the verifier's locale, if it has a value; notes it if it names another one.
fn is_set(name: &CStr) -> Option<bool> {
    // SAFETY: a string.
    let value = unsafe { sys::getenv(name.as_ptr()) };
    if value.is_null() {
        return None;
    }
    // SAFETY: a string of the environment.
    let named = unsafe { CStr::from_ptr(value) };
    if named.is_empty() {
        return None;
    }
    let known = is_the_locale(named);
    if !known {
        noted(name.as_ptr(), value);
    }
    Some(known)
}

fn is_the_locale(name: &CStr) -> bool {
    name == c"C" || name == c"POSIX"
}

/// Checks that a variable is as the verifier has it.
fn noted(name: *const c_char, value: *const c_char) -> *const c_char {
    if !value.is_null() {
        match plan::is_free() {
            true => EARLY.store(name.cast_mut(), Ordering::Relaxed),
            false => read(name),
        }
    }
    value
}

#[cold]
fn read(name: *const c_char) {
    // SAFETY: a string that the program has just used.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap_or("?");
    diverge::refuse(format_args!(
        "the program reads the environment variable {name}, which was not set when it was verified"
    ));
}
