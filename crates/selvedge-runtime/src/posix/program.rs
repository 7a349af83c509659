//! Looking into the program's memory on its behalf.
//!
//! Addresses come from the program and may be wrong. One in the first page is reported here; any
//! other bad one faults on the program's stack, where the signal handler makes it a bug of the
//! program.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{with_exposed_provenance, with_exposed_provenance_mut};

use selvedge_core::{FailureKind, Site, Width};

use super::state;
use crate::current;

const PAGE: usize = 4096;

/// Reports a null pointer.
pub(crate) fn check_not_null(address: usize, site: Site) {
    if address < PAGE {
        let message = format!("a C library function was given the null pointer {address:#x}");
        current::fail(FailureKind::NullDereference, message, site);
    }
}

/// Reads a value without announcing it (the caller has, or it is part of an object's own memory).
pub(crate) fn peek<T: Copy>(address: usize) -> T {
    check_not_null(address, current::site());
    // SAFETY: not null; a wild address faults, see the head of this file. `T` is plain data.
    unsafe { with_exposed_provenance::<T>(address).read_unaligned() }
}

/// Writes a value without announcing it.
pub(crate) fn poke<T: Copy>(address: usize, value: T) {
    check_not_null(address, current::site());
    current::writes(address, size_of::<T>());
    // SAFETY: not null; a wild address faults, see the head of this file.
    unsafe { with_exposed_provenance_mut::<T>(address).write_unaligned(value) }
}

/// Zeroes `size` bytes without announcing it.
pub(crate) fn wipe(address: usize, size: usize) {
    check_not_null(address, current::site());
    current::writes(address, size);
    // SAFETY: not null; a wild address faults, see the head of this file.
    unsafe { with_exposed_provenance_mut::<u8>(address).write_bytes(0, size) }
}

/// Reads a value as the program would with a plain access of its own.
pub(crate) fn read<T: Copy>(address: usize, site: Site) -> T {
    current::touch(address, size_of::<T>(), false, site);
    peek(address)
}

/// Writes a structure as the program would with a plain assignment.
pub(crate) fn write<T: Copy>(address: usize, value: T, site: Site) {
    current::touch(address, size_of::<T>(), true, site);
    poke(address, value);
}

/// Stores a pointer-sized number.
pub(crate) fn store_word(address: usize, value: usize, site: Site) {
    check_not_null(address, site);
    current::store(address, Width(8), value as u64, site);
}

/// Stores an `int`.
pub(crate) fn store_int(address: usize, value: c_int, site: Site) {
    check_not_null(address, site);
    current::store(address, Width(4), u64::from(value.cast_unsigned()), site);
}

/// The string at `address`, read without announcing it, for messages.
pub(crate) fn text(address: usize) -> String {
    if address < PAGE {
        return String::from("(null)");
    }
    // SAFETY: the program passes a string; a wild address faults, see the head of this file.
    let string = unsafe { CStr::from_ptr(with_exposed_provenance::<c_char>(address)) };
    string.to_string_lossy().into_owned()
}

/// Sets the running thread's `errno` and returns what a failing function returns.
pub(crate) fn error(number: c_int) -> c_int {
    set_errno(number);
    -1
}

/// Sets the running thread's `errno`, which the thread may notice.
pub(crate) fn set_errno(number: c_int) {
    let before = state::local(|local| std::mem::replace(&mut local.errno, number));
    if before != number {
        current::impure();
    }
}

/// From a return code to the convention of functions that set `errno`.
pub(crate) fn or_error(number: c_int) -> c_int {
    if number == 0 { 0 } else { error(number) }
}

/// Calls the program's function at `function`.
pub(crate) fn call(function: usize, argument: usize) {
    type Callback = unsafe extern "C-unwind" fn(usize);
    // SAFETY: the program registered this function for being called with one word.
    unsafe { std::mem::transmute::<usize, Callback>(function)(argument) }
    current::forget_call();
}
