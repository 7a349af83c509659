//! Accesses to ranges of bytes, and the functions that copy and fill memory.

use core::ffi::{c_int, c_void};

use super::event;
use super::stub::stubs;
use super::sys;
use super::thread;

stubs![
    "__tsan_read_range" => read_range,
    "__tsan_write_range" => write_range,
    "__tsan_memcpy" => copy,
    "__tsan_memmove" => copy,
    "__tsan_memset" => fill,
    "selvedge_memcpy" => copy,
    "selvedge_memmove" => copy,
    "selvedge_memset" => fill,
];

/// An announced range may hold variables of any kind, so it is events wherever the place is
/// counted.
fn announce(reads: bool, writes: bool) {
    let me = thread::current();
    let dirty = core::mem::replace(&mut me.dirty, writes.into()) != 0;
    if dirty && reads {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }
    if me.active != 0 {
        event::range();
    }
}

extern "C" fn read_range(_address: usize, _size: usize) {
    announce(true, false);
}

extern "C" fn write_range(_address: usize, _size: usize) {
    announce(false, true);
}

extern "C" fn copy(to: *mut c_void, from: *const c_void, size: usize) -> *mut c_void {
    announce(true, true);
    // SAFETY: the program asks for this copy.
    let result = unsafe { sys::memmove(to, from, size) };
    event::settle(thread::current());
    result
}

extern "C" fn fill(to: *mut c_void, byte: c_int, size: usize) -> *mut c_void {
    announce(false, true);
    // SAFETY: the program asks for this.
    let result = unsafe { sys::memset(to, byte, size) };
    event::settle(thread::current());
    result
}
