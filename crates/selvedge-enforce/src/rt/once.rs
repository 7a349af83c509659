//! `pthread_once`, `call_once`, and the guards of C++'s local statics.

use core::ffi::c_int;
use core::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use super::event::event;
use super::stub::stubs;
use super::sys;
use super::thread;

stubs![
    "__wrap_pthread_once" => once,
    "__wrap_call_once" => once,
    "__wrap___cxa_guard_acquire" => acquire,
    "__wrap___cxa_guard_release" => release,
    "__wrap___cxa_guard_abort" => abandon,
];

const FREE: u32 = 0;
const RUNNING: u32 = 1;
const DONE: u32 = 2;
const FOR_EVER: i64 = 1_000_000_000;
/// Where the guard of a static has its control; its first byte says that the static is there.
const CONTROL: usize = 4;

fn at(address: usize) -> &'static AtomicU32 {
    // SAFETY: the program says that a once control is there.
    unsafe { AtomicU32::from_ptr(core::ptr::with_exposed_provenance_mut(address)) }
}

/// Whether the caller has to run the routine.
fn begin(control: &AtomicU32) -> bool {
    event(|| {
        let order = Ordering::SeqCst;
        loop {
            match control.compare_exchange(FREE, RUNNING, order, order) {
                Ok(_) => return true,
                Err(RUNNING) => sys::futex_wait(control.as_ptr(), RUNNING, FOR_EVER),
                Err(_) => return false,
            }
        }
    })
}

fn end(control: &AtomicU32, state: u32) {
    event(|| control.swap(state, Ordering::SeqCst));
    sys::futex_wake_all(control.as_ptr());
}

extern "C" fn once(control: usize, routine: extern "C" fn()) -> c_int {
    let site = thread::current().site;
    if begin(at(control)) {
        routine();
        thread::current().site = site;
        end(at(control), DONE);
    }
    0
}

extern "C" fn acquire(guard: usize) -> c_int {
    begin(at(guard + CONTROL)).into()
}

extern "C" fn release(guard: usize) {
    // SAFETY: the compiler says that a guard is there.
    let made = unsafe { AtomicU8::from_ptr(core::ptr::with_exposed_provenance_mut(guard)) };
    event(|| made.swap(1, Ordering::SeqCst));
    end(at(guard + CONTROL), DONE);
}

extern "C" fn abandon(guard: usize) {
    end(at(guard + CONTROL), FREE);
}
