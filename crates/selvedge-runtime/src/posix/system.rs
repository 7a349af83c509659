//! Requests of the shim, for functions that have to be written in C.

use std::ffi::{c_int, c_long};

use selvedge_core::{FailureKind, Site};

use super::{futex, process, program};
use crate::current;

entry_points![
    selvedge_touch(4),
    selvedge_wrote(2),
    selvedge_syscall(3),
    selvedge_check_jump(2),
];

extern "C" fn selvedge_touch(address: usize, size: usize, write: c_int, site: usize) {
    current::touch(address, size, write != 0, Site(site as u64));
}

/// A part of the announced bytes is now written: the state may have been saved in between.
extern "C" fn selvedge_wrote(address: usize, size: usize) {
    current::wrote(address, size);
}

extern "C" fn selvedge_syscall(number: c_long, arguments: usize, site: usize) -> c_long {
    let site = Site(site as u64);
    match number {
        libc::SYS_futex => futex::call(program::peek(arguments), site),
        libc::SYS_gettid => process::thread_number().into(),
        libc::SYS_sched_yield => 0,
        _ => current::refuse(
            format!(
                "the raw system call number {number}{}; call a function of the C library instead, or \
                 give a stub with --stub FILE",
                name(number)
            ),
            site,
        ),
    }
}

/// The name of a system call that programs make without a function of the C library, in brackets.
fn name(number: c_long) -> &'static str {
    match number {
        libc::SYS_getpid => " (getpid)",
        libc::SYS_clone => " (clone)",
        libc::SYS_fork => " (fork)",
        libc::SYS_tgkill => " (tgkill)",
        libc::SYS_exit => " (exit)",
        libc::SYS_exit_group => " (exit_group)",
        libc::SYS_set_robust_list => " (set_robust_list)",
        libc::SYS_getrandom => " (getrandom)",
        libc::SYS_membarrier => " (membarrier)",
        libc::SYS_rseq => " (rseq)",
        libc::SYS_getcpu => " (getcpu)",
        libc::SYS_memfd_create => " (memfd_create)",
        libc::SYS_perf_event_open => " (perf_event_open)",
        libc::SYS_io_uring_setup => " (io_uring_setup)",
        libc::SYS_io_uring_enter => " (io_uring_enter)",
        libc::SYS_statx => " (statx)",
        libc::SYS_copy_file_range => " (copy_file_range)",
        libc::SYS_clone3 => " (clone3)",
        libc::SYS_close => " (close)",
        libc::SYS_mmap => " (mmap)",
        _ => "",
    }
}

/// A jump may only leave functions that are still running on the same stack.
extern "C" fn selvedge_check_jump(target: usize, site: usize) {
    if target < current::stack_pointer() || target > current::stack_top() {
        let what = String::from("longjmp into a function that has returned");
        current::fail(FailureKind::WildAccess, what, Site(site as u64));
    }
}
