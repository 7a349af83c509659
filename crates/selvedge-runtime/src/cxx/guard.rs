//! The guards of local statics.
//!
//! The compiler itself reads a guard's first byte to see whether the object exists, so that byte is
//! memory. The second half of the guard is a once control, where threads wait that come while
//! the object is being made.

use std::ffi::c_int;

use selvedge_core::{FailureKind, MemoryOrder, Op, Width};

use crate::current;
use crate::posix::state::local;
use crate::posix::{entry_points, once};

entry_points![
    __cxa_guard_acquire(1),
    __cxa_guard_release(1),
    __cxa_guard_abort(1),
];

const CONTROL_OFFSET: usize = 4;

extern "C" fn __cxa_guard_acquire(guard: usize) -> c_int {
    let site = current::site();
    if local(|local| local.initialising.contains(&guard)) {
        let what = String::from("the initialisation of a local static needs that same static");
        current::fail(FailureKind::ObjectMisuse, what, site);
    }
    if !once::begin(once::once(guard + CONTROL_OFFSET, site)) {
        return 0;
    }
    local(|local| local.initialising.push(guard));
    1
}

extern "C" fn __cxa_guard_release(guard: usize) {
    let site = current::site();
    forget(guard);
    let at = current::location(guard, Width(1));
    current::perform(
        Op::Store {
            at,
            value: 1,
            order: MemoryOrder::Release,
        },
        site,
    );
    once::end(once::once(guard + CONTROL_OFFSET, site));
}

extern "C" fn __cxa_guard_abort(guard: usize) {
    forget(guard);
    once::abandon(once::once(guard + CONTROL_OFFSET, current::site()));
}

fn forget(guard: usize) {
    local(|local| local.initialising.retain(|&other| other != guard));
}
