//! Checks the inputs of a program: arguments and environment.
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
