//! Fixed answers to questions about the system and about the functions in the program's process.

use std::ffi::{CString, c_int, c_long, c_ulong};

use libc::{EINVAL, ENOENT};

use super::program::{self, error, or_error, set_errno};
use super::strings;
use crate::current;
use crate::symbols::{self, Symbol};

entry_points![
    sysconf(1),
    getauxval(1),
    dlsym(2),
    __pthread_get_minstack(1),
    sched_getscheduler(1),
    sched_setscheduler(3),
    sched_getparam(2),
    sched_setparam(2),
    sched_rr_get_interval(2),
];

/// How many processors the program sees.
pub(crate) const PROCESSORS: u32 = 4;
pub(crate) const PAGE: c_int = 4096;
/// The numbers of the program's user, group and process.
pub(crate) const PROCESS: c_int = 1000;
const TICKS_PER_SECOND: c_int = 100;
const _SC_MINSIGSTKSZ: c_int = 249;
const _SC_SIGSTKSZ: c_int = 250;
const SMALLEST_STACK: usize = 16 << 10;

extern "C" fn sysconf(name: c_int) -> c_long {
    match name {
        libc::_SC_NPROCESSORS_CONF | libc::_SC_NPROCESSORS_ONLN => PROCESSORS.into(),
        libc::_SC_PAGESIZE => PAGE.into(),
        libc::_SC_CLK_TCK => TICKS_PER_SECOND.into(),
        libc::_SC_OPEN_MAX | libc::_SC_IOV_MAX => 1024,
        libc::_SC_PHYS_PAGES | libc::_SC_AVPHYS_PAGES => 1 << 20,
        libc::_SC_LEVEL1_ICACHE_LINESIZE
        | libc::_SC_LEVEL1_DCACHE_LINESIZE
        | libc::_SC_LEVEL2_CACHE_LINESIZE
        | libc::_SC_LEVEL3_CACHE_LINESIZE
        | libc::_SC_HOST_NAME_MAX => 64,
        libc::_SC_THREADS
        | libc::_SC_BARRIERS
        | libc::_SC_SEMAPHORES
        | libc::_SC_SPIN_LOCKS
        | libc::_SC_READER_WRITER_LOCKS
        | libc::_SC_TIMEOUTS
        | libc::_SC_CLOCK_SELECTION
        | libc::_SC_MONOTONIC_CLOCK
        | libc::_SC_VERSION => 200_809,
        libc::_SC_THREAD_STACK_MIN => SMALLEST_STACK as c_long,
        libc::_SC_THREAD_KEYS_MAX | libc::_SC_GETPW_R_SIZE_MAX | libc::_SC_GETGR_R_SIZE_MAX => 1024,
        libc::_SC_THREAD_THREADS_MAX => -1,
        libc::_SC_ARG_MAX => 2 << 20,
        _SC_MINSIGSTKSZ => 2048,
        _SC_SIGSTKSZ => 8192,
        _ if is_a_name(name) => {
            let what = format!("sysconf({name}), whose answer is not modelled");
            current::refuse(what, current::site())
        }
        _ => error(EINVAL).into(),
    }
}

/// Whether the C library can answer for `name`.
fn is_a_name(name: c_int) -> bool {
    // SAFETY: takes any number.
    let (_, number) = super::host::with_errno(|| unsafe { libc::sysconf(name) });
    number != EINVAL
}

/// The processor has no features that a program could ask for here.
extern "C" fn getauxval(kind: c_ulong) -> c_ulong {
    match kind {
        libc::AT_PAGESZ => PAGE as c_ulong,
        libc::AT_CLKTCK => TICKS_PER_SECOND as c_ulong,
        libc::AT_UID | libc::AT_EUID | libc::AT_GID | libc::AT_EGID => PROCESS as c_ulong,
        libc::AT_HWCAP | libc::AT_HWCAP2 | libc::AT_SECURE | libc::AT_FLAGS => 0,
        libc::AT_RANDOM | libc::AT_EXECFN | libc::AT_PHDR | libc::AT_ENTRY | libc::AT_PLATFORM => {
            let what = format!("getauxval({kind}), an address that is not modelled");
            current::refuse(what, current::site())
        }
        _ => {
            set_errno(ENOENT);
            0
        }
    }
}

/// Functions by name: those that the program can call by their names as well.
extern "C" fn dlsym(handle: usize, name: usize) -> usize {
    let site = current::site();
    strings::read_view(name, site);
    match look_up(handle, name) {
        Ok(found) => found,
        Err(what) => current::refuse(what, site),
    }
}

/// The address of a function, 0 if the process has none of that name, or why it cannot be told.
fn look_up(handle: usize, name: usize) -> Result<usize, String> {
    let name = program::text(name);
    if handle != libc::RTLD_DEFAULT.addr() {
        return Err(format!(
            "dlsym of `{name}` in one part of the process; use RTLD_DEFAULT"
        ));
    }
    if let Some(function) = current::function(&name) {
        return Ok(function);
    }
    let Ok(string) = CString::new(&*name) else {
        return Ok(0);
    };
    // SAFETY: a valid handle and a valid string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, string.as_ptr()) };
    if !found.is_null() && symbols::classify(&name) != Symbol::Known {
        return Err(format!("dlsym of `{name}`, which is not modelled"));
    }
    Ok(found.expose_provenance())
}

/// Rust's standard library asks how much stack the C library needs for itself.
extern "C" fn __pthread_get_minstack(_attributes: usize) -> usize {
    SMALLEST_STACK
}

/// Whether a thread of this policy may have this priority.
pub(crate) fn is_priority(priority: c_int, policy: c_int) -> bool {
    match policy {
        libc::SCHED_FIFO | libc::SCHED_RR => (1..=99).contains(&priority),
        _ => priority == 0,
    }
}

// All threads have the usual policy, and no schedule is left out because of another one.

extern "C" fn sched_getscheduler(_process: c_int) -> c_int {
    libc::SCHED_OTHER
}

extern "C" fn sched_setscheduler(_process: c_int, _policy: c_int, parameters: usize) -> c_int {
    program::read::<c_int>(parameters, current::site());
    0
}

extern "C" fn sched_getparam(_process: c_int, parameters: usize) -> c_int {
    program::store_int(parameters, 0, current::site());
    0
}

extern "C" fn sched_setparam(process: c_int, parameters: usize) -> c_int {
    sched_setscheduler(process, 0, parameters)
}

extern "C" fn sched_rr_get_interval(process: c_int, interval: usize) -> c_int {
    if process < 0 {
        return or_error(EINVAL);
    }
    program::write(interval, [0_i64, 4_000_000], current::site());
    0
}
