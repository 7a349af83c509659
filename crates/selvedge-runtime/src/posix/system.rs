//! What the shim asks on behalf of the functions that had to be written in C.

use std::ffi::{c_int, c_long};

use selvedge_core::{FailureKind, Site};

use super::{futex, process, program};
use crate::current;

entry_points![
    selvedge_touch(4),
    selvedge_wrote(1),
    selvedge_syscall(3),
    selvedge_check_jump(2),
];

extern "C" fn selvedge_touch(address: usize, size: usize, write: c_int, site: usize) {
    current::touch(address, size, write != 0, Site(site as u64));
}

/// What was announced before is now written, in part: it may have been saved in between.
extern "C" fn selvedge_wrote(address: usize) {
    current::wrote(address);
}

extern "C" fn selvedge_syscall(number: c_long, arguments: usize, site: usize) -> c_long {
    let site = Site(site as u64);
    match number {
        libc::SYS_futex => futex::call(program::peek(arguments), site),
        libc::SYS_gettid => process::thread_number().into(),
        libc::SYS_sched_yield => 0,
        _ => current::refuse(format!("the raw system call number {number}"), site),
    }
}

/// A jump may only leave functions that are still running on the same stack.
extern "C" fn selvedge_check_jump(target: usize, site: usize) {
    if target < current::stack_pointer() || target > current::stack_top() {
        let what = String::from("longjmp into a function that has returned");
        current::fail(FailureKind::WildAccess, what, Site(site as u64));
    }
}
