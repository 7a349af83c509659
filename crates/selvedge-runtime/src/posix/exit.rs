//! The end of threads and of the process: destructors, exit handlers, `exit`.

use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;

use selvedge_core::{Op, Site, ThreadId};

use super::state::{Destructor, local, process};
use super::{key, program};
use crate::current;

entry_points![
    atexit,
    __cxa_atexit,
    __cxa_finalize,
    __cxa_thread_atexit,
    __cxa_thread_atexit_impl,
    at_quick_exit,
    __cxa_at_quick_exit,
    quick_exit,
    exit,
    _exit,
    _Exit,
    selvedge_begin_exit,
    selvedge_continue_exit,
    selvedge_thread_exit,
    selvedge_push_cleanup,
    selvedge_pop_cleanup,
    selvedge_take_destructors,
];

/// Memory for the exception that unwinds the stack of a thread that calls `pthread_exit`.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub(crate) struct ForcedUnwind([u64; 8]);

impl ForcedUnwind {
    /// Before it is used.
    pub(crate) const NEW: ForcedUnwind = ForcedUnwind([0; 8]);
}

/// A function to call when the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handler {
    function: usize,
    argument: usize,
    quick: bool,
    /// When it was registered; `None` before main.
    moment: Option<(ThreadId, u32)>,
    /// Handlers run in the opposite order of this: along happens-before, and the same in every
    /// interleaving where that says nothing.
    order: (u64, ThreadId, i64),
}

fn register(function: usize, argument: usize, quick: bool) -> c_int {
    current::impure();
    let thread = current::thread();
    let moment = (!current::booting()).then(current::moment);
    let clock = moment.map_or(0, |_| current::clock_sum());
    process(|process| {
        process.registered += 1;
        let order = (clock, thread, process.registered);
        process.handlers.push(Handler {
            function,
            argument,
            quick,
            moment,
            order,
        });
    });
    0
}

/// The `__attribute__((destructor))` functions, of which the compiler's own start-up code is one.
/// They run after all handlers, and no more when the host's process ends.
extern "C" fn selvedge_take_destructors(functions: usize, count: usize, read_only: c_int) {
    if read_only != 0 {
        protect(functions, 8 * count, libc::PROT_READ | libc::PROT_WRITE);
    }
    for index in 0..count {
        let at = functions + 8 * index;
        let function: usize = program::peek(at);
        program::poke(at, nothing as *const () as usize);
        if count > 1 {
            let order = (0, ThreadId::MAIN, index as i64 - count as i64);
            let handler = Handler {
                function,
                argument: 0,
                quick: false,
                moment: None,
                order,
            };
            process(|process| process.handlers.push(handler));
        }
    }
    if read_only != 0 {
        protect(functions, 8 * count, libc::PROT_READ);
    }
}

extern "C" fn nothing() {}

fn protect(address: usize, size: usize, protection: c_int) {
    const PAGE: usize = 4096;
    let start = address & !(PAGE - 1);
    // SAFETY: pages of the program's own image, which are in use as what they stay.
    unsafe {
        libc::mprotect(
            with_exposed_provenance_mut(start),
            address + size - start,
            protection,
        )
    };
}

fn take_last(quick: bool) -> Option<Handler> {
    process(|process| {
        let handlers = process.handlers.iter().enumerate();
        let last = handlers
            .filter(|(_, h)| h.quick == quick)
            .max_by_key(|(_, h)| h.order)?
            .0;
        Some(process.handlers.remove(last))
    })
}

/// Whether the running thread knows of a handler. Those of which nothing orders the registration
/// before this point do not count: in another run of the same execution they may come later.
fn has_handlers(quick: bool) -> bool {
    let known = |handler: &Handler| handler.moment.is_none_or(current::knows);
    process(|process| {
        process
            .handlers
            .iter()
            .any(|h| h.quick == quick && known(h))
    })
}

/// Runs the exit handlers, the latest first, once the other threads have come to an end.
fn run_handlers(quick: bool, site: Site) {
    if !has_handlers(quick) {
        return;
    }
    current::perform(Op::JoinAll, site);
    while let Some(handler) = take_last(quick) {
        program::call(handler.function, handler.argument);
    }
}

/// Runs the destructors of the running thread's thread-local objects and values.
fn run_thread_destructors() {
    while let Some(destructor) = local(|local| local.destructors.pop()) {
        program::call(destructor.function, destructor.object);
    }
    key::run_destructors();
}

/// What a thread does when its start routine has returned.
pub(crate) extern "C-unwind" fn after_start(result: *mut c_void) -> ! {
    current::settle_now();
    run_thread_destructors();
    current::finish(result)
}

/// What main does when it has returned.
pub(crate) extern "C-unwind" fn after_main(status: *mut c_void) -> ! {
    current::settle_now();
    run_thread_destructors();
    run_handlers(false, Site::default());
    current::finish(status)
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
        (&raw mut local.unwinding).expose_provenance()
    })
}

/// `pthread_exit` ends, when the shim has unwound the stack.
extern "C-unwind" fn selvedge_thread_exit() -> ! {
    let result = with_exposed_provenance_mut(local(|local| local.result));
    if current::thread() == ThreadId::MAIN {
        after_main(result);
    }
    after_start(result)
}

extern "C" fn selvedge_push_cleanup(buffer: usize) {
    local(|local| local.cleanups.push(buffer));
}

extern "C" fn selvedge_pop_cleanup() -> usize {
    local(|local| local.cleanups.pop()).unwrap_or(0)
}

extern "C" fn atexit(function: usize) -> c_int {
    register(function, 0, false)
}

extern "C" fn __cxa_atexit(function: usize, argument: usize, _library: usize) -> c_int {
    register(function, argument, false)
}

/// Called when the shared object is unloaded; the handlers are long through by then.
extern "C" fn __cxa_finalize(_library: usize) {}

extern "C" fn __cxa_thread_atexit(function: usize, object: usize, _library: usize) -> c_int {
    current::impure();
    local(|local| local.destructors.push(Destructor { function, object }));
    0
}

extern "C" fn __cxa_thread_atexit_impl(function: usize, object: usize, library: usize) -> c_int {
    __cxa_thread_atexit(function, object, library)
}

extern "C" fn at_quick_exit(function: usize) -> c_int {
    register(function, 0, true)
}

extern "C" fn __cxa_at_quick_exit(function: usize, _library: usize) -> c_int {
    register(function, 0, true)
}

extern "C-unwind" fn quick_exit(_status: c_int) -> ! {
    run_handlers(true, current::site());
    current::exit()
}

extern "C-unwind" fn exit(_status: c_int) -> ! {
    let site = current::site();
    refuse_in_constructor("exit", site);
    run_thread_destructors();
    run_handlers(false, site);
    current::exit()
}

extern "C" fn _exit(_status: c_int) -> ! {
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
