//! Exit handlers: `atexit`, the destructors of static objects, `__attribute__((destructor))`.

use std::ffi::c_int;
use std::ptr::with_exposed_provenance_mut;

use selvedge_core::MemoryOrder::AcqRel;
use selvedge_core::objects::ObjectFunction;
use selvedge_core::{Site, ThreadId};
use serde::{Deserialize, Serialize};

use super::object::Object;
use super::program;
use super::state::process;
use crate::current;
use crate::states;

entry_points![
    atexit(1),
    __cxa_atexit(3),
    __cxa_finalize(1),
    at_quick_exit(1),
    __cxa_at_quick_exit(2),
    selvedge_take_destructors(4),
];

/// The way of ending the process that runs a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Exit {
    /// `exit`, or the end of main.
    Normal,
    /// `quick_exit`.
    Quick,
}

/// A function to call when the process ends.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Handler {
    function: usize,
    argument: usize,
    exit: Exit,
    /// When it was registered; `None` if that was before whatever comes now.
    moment: Option<(ThreadId, u32)>,
    order: Order,
}

/// Handlers run in the opposite order of this: along happens-before, and the same in every
/// interleaving where that says nothing.
pub(crate) type Order = (u64, ThreadId, i64);

impl Handler {
    /// Whether the running thread must call it. A handler of which nothing orders the registration
    /// before this point does not count: in another run of the same execution it may come later.
    fn is_due(&self, exit: Exit) -> bool {
        self.exit == exit && self.moment.is_none_or(current::knows)
    }
}

fn register(function: usize, argument: usize, exit: Exit) -> c_int {
    current::impure();
    // Where states are saved, what was registered so far is part of the state.
    let ordered = !current::booting() && !states::in_use();
    let thread = match ordered {
        true => current::thread(),
        false => ThreadId::MAIN,
    };
    let moment = ordered.then(current::moment);
    let clock = moment.map_or(0, |_| current::clock_sum());
    process(|process| {
        process.registered += 1;
        let order = (clock, thread, process.registered);
        process.handlers.push(Handler {
            function,
            argument,
            exit,
            moment,
            order,
        });
    });
    0
}

/// Whether there is anything to run.
pub(crate) fn any(exit: Exit) -> bool {
    process(|process| process.handlers.iter().any(|handler| handler.is_due(exit)))
}

/// Runs the handlers, the latest first, unless another thread was faster.
pub(crate) fn run(exit: Exit, site: Site) {
    let lock = process(|process| process.exit_lock);
    let lock = Object::used_at(lock, 8, "process", site);
    let owner = current::thread();
    if lock
        .step(ObjectFunction::MutexTryLock { owner }, AcqRel)
        .wrote
        .is_none()
    {
        return;
    }
    while let Some(handler) = next(exit) {
        program::call(handler.function, handler.argument);
    }
}

/// The latest handler that this thread has not called yet. It stays on the list, which other threads
/// look at in any order.
fn next(exit: Exit) -> Option<Handler> {
    let thread = current::thread();
    process(|process| {
        let called = std::mem::take(&mut process.thread(thread).called);
        let due = process
            .handlers
            .iter()
            .filter(|handler| handler.is_due(exit));
        let left = due.filter(|handler| !called.contains(&handler.order));
        let next = left.max_by_key(|handler| handler.order).copied();
        let local = process.thread(thread);
        local.called = called;
        local.called.extend(next.map(|handler| handler.order));
        next
    })
}

/// The `__attribute__((destructor))` functions, of which the compiler's own start-up code is one.
/// They run after all handlers, and no more when the host's process ends.
extern "C" fn selvedge_take_destructors(
    functions: usize,
    count: usize,
    read_only: c_int,
    exit_lock: usize,
) {
    process(|process| process.exit_lock = exit_lock);
    if read_only != 0 {
        protect(functions, 8 * count, libc::PROT_READ | libc::PROT_WRITE);
    }
    for index in 0..count {
        let at = functions + 8 * index;
        let function: usize = program::peek(at);
        program::poke(at, nothing as *const () as usize);
        if count > 1 {
            let order = (0, ThreadId::MAIN, index as i64 - count as i64);
            let (argument, exit, moment) = (0, Exit::Normal, None);
            let handler = Handler {
                function,
                argument,
                exit,
                moment,
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
    let size = address + size - start;
    // SAFETY: pages of the program's own image, which are in use as what they stay.
    unsafe { libc::mprotect(with_exposed_provenance_mut(start), size, protection) };
}

extern "C" fn atexit(function: usize) -> c_int {
    register(function, 0, Exit::Normal)
}

extern "C" fn __cxa_atexit(function: usize, argument: usize, _library: usize) -> c_int {
    register(function, argument, Exit::Normal)
}

/// Called when the shared object is unloaded; the handlers are long through by then.
extern "C" fn __cxa_finalize(_library: usize) {}

extern "C" fn at_quick_exit(function: usize) -> c_int {
    register(function, 0, Exit::Quick)
}

extern "C" fn __cxa_at_quick_exit(function: usize, _library: usize) -> c_int {
    register(function, 0, Exit::Quick)
}
