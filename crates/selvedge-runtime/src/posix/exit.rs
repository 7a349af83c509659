//! The end of threads and of the process.

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

use selvedge_core::{FailureKind, Op, Site, ThreadId};
use serde::{Deserialize, Serialize};

use super::handlers::{self, Exit};
use super::state::{Destructor, local};
use super::{key, program};
use crate::abi::EntryPoint;
use crate::current;
use crate::runtime::with;

entry_points![
    __cxa_thread_atexit(3),
    __cxa_thread_atexit_impl(3),
    _exit(1),
    _Exit(1),
    selvedge_begin_exit(1),
    selvedge_continue_exit(0),
    selvedge_push_cleanup(1),
    selvedge_pop_cleanup(0)
];

/// The functions that unwind the stack.
pub(crate) fn unwinding() -> Vec<EntryPoint> {
    vec![
        ("exit", exit as *const () as usize, 1),
        ("quick_exit", quick_exit as *const () as usize, 1),
        (
            "selvedge_thread_exit",
            selvedge_thread_exit as *const () as usize,
            0,
        ),
    ]
}

/// Memory for the exception that unwinds the stack of a thread that calls `pthread_exit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(16))]
pub(crate) struct ForcedUnwind([u64; 8]);

impl ForcedUnwind {
    /// Before it is used.
    pub(crate) const NEW: ForcedUnwind = ForcedUnwind([0; 8]);
}

/// Runs the destructors of the running thread's thread-local objects and values.
fn run_thread_destructors() {
    while let Some(destructor) = local(|local| local.destructors.pop()) {
        program::call(destructor.function, destructor.object);
    }
    key::run_destructors();
}

/// The end of a thread whose start routine has returned.
pub(crate) extern "C-unwind" fn after_start(result: *mut c_void) -> ! {
    current::settle_now();
    current::forget_call();
    run_thread_destructors();
    current::finish(result)
}

/// The end of main when it has returned: that ends the process, whatever the other threads do.
pub(crate) extern "C-unwind" fn after_main(status: *mut c_void) -> ! {
    current::settle_now();
    note_status(status.addr() as c_int);
    current::forget_call();
    run_thread_destructors();
    if handlers::any(Exit::Normal) {
        handlers::run(Exit::Normal, Site::default());
    }
    current::end_main()
}

/// The end of main when it has called `pthread_exit`: the process ends when its last thread does.
fn after_last_thread(result: *mut c_void) -> ! {
    current::settle_now();
    current::forget_call();
    run_thread_destructors();
    if handlers::any(Exit::Normal) {
        let site = Site::default();
        current::perform(Op::JoinAll, site);
        handlers::run(Exit::Normal, site);
    }
    current::finish(result)
}

/// `pthread_exit` begins: notes the result and lends memory for unwinding.
extern "C" fn selvedge_begin_exit(result: usize) -> usize {
    refuse_in_constructor("pthread_exit", current::site());
    local(|local| local.result = result);
    selvedge_continue_exit()
}

extern "C" fn selvedge_continue_exit() -> usize {
    local(|local| {
        local.unwinding = ForcedUnwind::NEW;
        let place = (&raw mut local.unwinding).expose_provenance();
        current::expose(place, size_of_val(&local.unwinding));
        place
    })
}

/// `pthread_exit` ends, when the shim has unwound the stack.
extern "C-unwind" fn selvedge_thread_exit() -> ! {
    let result = with_exposed_provenance_mut(local(|local| local.result));
    if current::thread() == ThreadId::MAIN {
        after_last_thread(result);
    }
    after_start(result)
}

extern "C" fn selvedge_push_cleanup(buffer: usize) {
    local(|local| local.cleanups.push(buffer));
}

extern "C" fn selvedge_pop_cleanup() -> usize {
    local(|local| local.cleanups.pop()).unwrap_or(0)
}

extern "C" fn __cxa_thread_atexit(function: usize, object: usize, _library: usize) -> c_int {
    current::impure();
    local(|local| local.destructors.push(Destructor { function, object }));
    0
}

extern "C" fn __cxa_thread_atexit_impl(function: usize, object: usize, library: usize) -> c_int {
    __cxa_thread_atexit(function, object, library)
}

extern "C-unwind" fn quick_exit(status: c_int) -> ! {
    note_status(status);
    end_process(Exit::Quick, current::site())
}

extern "C-unwind" fn exit(status: c_int) -> ! {
    let site = current::site();
    note_status(status);
    refuse_in_constructor("exit", site);
    run_thread_destructors();
    end_process(Exit::Normal, site)
}

/// A program that only prints how it is used ends with a status other than zero, and so does a
/// failing test.
fn note_status(status: c_int) {
    let status = status & 0xff;
    let fails = with(|runtime| {
        let largest = &mut runtime.overlooked.status;
        *largest = status.max(*largest);
        status != 0 && runtime.settings.check_status
    });
    if fails && !current::booting() {
        let what = format!("the program ended with status {status}");
        current::fail(FailureKind::Assertion, what, current::site());
    }
}

/// The other threads are still running.
fn end_process(exit: Exit, site: Site) -> ! {
    if handlers::any(exit) {
        handlers::run(exit, site);
    }
    current::exit()
}

extern "C" fn _exit(status: c_int) -> ! {
    note_status(status);
    refuse_in_constructor("_exit", current::site());
    current::exit()
}

#[expect(non_snake_case, reason = "that is its name")]
extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

fn refuse_in_constructor(function: &str, site: Site) {
    if current::booting() {
        current::refuse(format!("a constructor that calls {function}"), site);
    }
}
