//! A program's questions about its process, and abnormal ends of it.

use std::ffi::{c_char, c_int};

use selvedge_core::{FailureKind, Site};

use super::program::{error, text};
use super::state::process;
use super::system_values::{PAGE, PROCESS, PROCESSORS};
use super::{strings, thread};
use crate::current;

entry_points![
    __errno_location(0),
    getpid(0),
    getppid(0),
    gettid(0),
    getuid(0),
    geteuid(0),
    getgid(0),
    getegid(0),
    get_nprocs(0),
    get_nprocs_conf(0),
    getpagesize(0),
    getenv(1),
    secure_getenv(1),
    abort(0),
    raise(1),
    kill(2),
    pthread_kill(2),
    __stack_chk_fail(0),
    __fortify_fail(1),
    __chk_fail(0),
    selvedge_refuse(2),
    selvedge_give_up(2),
];

/// The address of the running thread's `errno`.
extern "C" fn __errno_location() -> usize {
    let running = current::thread();
    let place = process(|process| (&raw mut process.thread(running).errno).expose_provenance());
    current::expose(place, size_of::<c_int>());
    place
}

extern "C" fn getpid() -> c_int {
    PROCESS
}

extern "C" fn getppid() -> c_int {
    1
}

extern "C" fn gettid() -> c_int {
    thread_number()
}

/// The system's number of the running thread.
pub(crate) fn thread_number() -> c_int {
    PROCESS + current::thread().0.cast_signed()
}

extern "C" fn getuid() -> c_int {
    PROCESS
}

extern "C" fn geteuid() -> c_int {
    PROCESS
}

extern "C" fn getgid() -> c_int {
    PROCESS
}

extern "C" fn getegid() -> c_int {
    PROCESS
}

extern "C" fn get_nprocs() -> c_int {
    PROCESSORS.cast_signed()
}

extern "C" fn get_nprocs_conf() -> c_int {
    PROCESSORS.cast_signed()
}

extern "C" fn getpagesize() -> c_int {
    PAGE
}

/// The program has the environment that the user gave it, and not the checker's.
extern "C" fn getenv(name: usize) -> usize {
    let name = strings::read_view(name, current::site());
    current::variable(name).unwrap_or(0)
}

extern "C" fn secure_getenv(name: usize) -> usize {
    getenv(name)
}

extern "C" fn abort() -> ! {
    current::fail(
        FailureKind::Abort,
        String::from("abort() was called"),
        current::site(),
    )
}

extern "C" fn raise(signal: c_int) -> c_int {
    deliver(signal, current::site())
}

extern "C" fn kill(target: c_int, signal: c_int) -> c_int {
    let site = current::site();
    if target != PROCESS && target != 0 {
        current::refuse(String::from("kill of another process"), site);
    }
    deliver(signal, site)
}

extern "C" fn pthread_kill(handle: usize, signal: c_int) -> c_int {
    let site = current::site();
    if signal != 0 && handle != thread::handle(current::thread()) {
        current::refuse(String::from("pthread_kill of another thread"), site);
    }
    deliver(signal, site)
}

/// A signal does what it does by default.
pub(crate) fn deliver(signal: c_int, site: Site) -> c_int {
    match signal {
        0 | libc::SIGCHLD | libc::SIGURG | libc::SIGWINCH | libc::SIGCONT => 0,
        libc::SIGSTOP | libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU => {
            current::refuse(String::from("a program that stops itself"), site)
        }
        1..=64 => {
            let name = signal_name(signal);
            let what = format!("the program raised {name}");
            current::fail(FailureKind::Signal, what, site)
        }
        _ => error(libc::EINVAL),
    }
}

fn signal_name(signal: c_int) -> String {
    let name = match signal {
        libc::SIGABRT => "SIGABRT",
        libc::SIGALRM => "SIGALRM",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGHUP => "SIGHUP",
        libc::SIGILL => "SIGILL",
        libc::SIGINT => "SIGINT",
        libc::SIGKILL => "SIGKILL",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGUSR2 => "SIGUSR2",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

extern "C" fn __stack_chk_fail() -> ! {
    let what = "a function overwrote its own stack frame (stack smashing)";
    current::fail(FailureKind::WildAccess, what.to_owned(), current::site())
}

extern "C" fn __fortify_fail(message: usize) -> ! {
    let what = text(message);
    current::fail(FailureKind::WildAccess, what, current::site())
}

extern "C" fn __chk_fail() -> ! {
    let what = "a C library function would overrun its destination";
    current::fail(FailureKind::WildAccess, what.to_owned(), current::site())
}

/// Where the stubs of functions that are not modelled end up.
extern "C" fn selvedge_refuse(name: *const c_char, site: usize) -> ! {
    let name = text(name.expose_provenance());
    let what = crate::symbols::refusal(&name);
    current::refuse(what, Site(site as u64))
}

/// Where the traps before what cannot be checked end up.
extern "C" fn selvedge_give_up(what: usize, site: usize) -> ! {
    current::refuse(text(what), Site(site as u64))
}
