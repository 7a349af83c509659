//! How threads begin and end.

use std::ffi::c_void;
use std::path::PathBuf;

use selvedge_core::failure::Other;
use selvedge_core::{Failure, FailureKind, MemoryOrder, Op, Pending, Site, Stop, ThreadId};

use super::{booting, perform, settle_now, site};
use crate::arena::pointer;
use crate::environment;
use crate::fiber::{self, Context, Start};
use crate::float::Float;
use crate::gate::gate;
use crate::posix;
use crate::runtime::{Phase, with};
use crate::states;
use crate::tsan::settle;

/// The number that the next [`spawn`] of the running thread will return; the program may store it
/// where the new thread reads it.
pub(crate) fn next_thread() -> ThreadId {
    match with(|runtime| runtime.next_child()) {
        Ok(child) => ThreadId(child as u32),
        Err(why) => refuse(why, site()),
    }
}

/// Gives the next thread that the running one starts a stack of `size` bytes at least.
pub(crate) fn want_stack(size: usize, site: Site) {
    let child = next_thread();
    if !with(|runtime| runtime.threads[child.index()].slot.grow(size)) {
        refuse(format!("a stack of {size} bytes for a thread"), site);
    }
}

/// Starts a thread: creates its fiber and performs the [`Op::Create`].
pub(crate) fn spawn(
    start: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    site: Site,
) -> ThreadId {
    if booting() {
        refuse("threads before `main`".to_owned(), site);
    }
    let child = next_thread();
    with(|runtime| {
        runtime.overlooked.threads = true;
        let thread = runtime.current();
        thread.published |= thread.slot.contains(argument.addr());
    });
    perform(Op::Create { child }, site);
    // SAFETY: on x86-64, a function that ignores its further arguments can be called with them.
    let start: Start = unsafe { std::mem::transmute(start) };
    with(|runtime| {
        let parent = runtime.running;
        runtime.threads[parent].spawned += 1;
        let child = child.index();
        runtime.begin_thread(child);
        let (young, old) = runtime.pair(child, parent);
        young.clock.copy_from_slice(&old.clock);
        young.clock[child] = 0;
        young.float = Float::now();
        let top = young.slot.stack_top;
        // SAFETY: the slot is committed, aligned to pages, and nothing runs on it.
        young.context = unsafe { fiber::prepare(top, start, (argument, 0, 0), posix::after_start) };
    });
    child
}

/// Prepares main's fiber.
pub(crate) fn start_main() {
    with(|runtime| {
        runtime.begin_thread(0);
        // SAFETY: the address of the program's `main`; further arguments do no harm.
        let start: Start = unsafe { std::mem::transmute(runtime.image.main) };
        let thread = &mut runtime.threads[0];
        thread.float = runtime.initial_float;
        let call = environment::write(&runtime.settings, thread.slot.stack_top);
        let words = (pointer(call.count), call.arguments, call.environment);
        // SAFETY: the stack below the arguments, which nothing runs on.
        thread.context = unsafe { fiber::prepare(call.arguments, start, words, posix::after_main) };
    });
}

/// Where the value of the environment's variable `name` is.
pub(crate) fn variable(name: &[u8]) -> Option<usize> {
    with(|runtime| {
        let stack_top = runtime.threads[0].slot.stack_top;
        environment::find(&runtime.settings, stack_top, name)
    })
}

/// Where the pointers to all variables of the environment are.
pub(crate) fn variables() -> usize {
    with(|runtime| {
        let stack_top = runtime.threads[0].slot.stack_top;
        environment::variables(&runtime.settings, stack_top)
    })
}

/// The file with the program's standard input.
pub(crate) fn standard_input() -> Option<PathBuf> {
    with(|runtime| runtime.settings.stdin.clone())
}

/// Where the function `name` of the program is, stubs included.
pub(crate) fn function(name: &str) -> Option<usize> {
    with(|runtime| {
        let mut functions = runtime.image.functions.iter();
        let function = functions.find(|function| function.name == name)?;
        Some(runtime.image.base + function.start)
    })
}

/// Ends the running thread with `result`, which a join returns.
pub(crate) fn finish(result: *mut c_void) -> ! {
    settle_now();
    settle::finish();
    with(|runtime| runtime.current().result = result);
    stop(Stop::Finished, site())
}

/// Ends the process because main has returned.
pub(crate) fn end_main() -> ! {
    settle_now();
    settle::check();
    stop(Stop::Returned, site())
}

/// The result of a thread that has finished (ask after an [`Op::Join`]).
pub(crate) fn result(thread: ThreadId) -> *mut c_void {
    with(|runtime| runtime.threads[thread.index()].result)
}

/// Ends the process as far as the running thread is concerned.
pub(crate) fn exit() -> ! {
    let site = site();
    if states::in_use() {
        // Others may have got anywhere by then, so it is a step of its own.
        let order = MemoryOrder::SeqCst;
        perform(Op::Fence { order }, site);
    }
    settle::check();
    stop(Stop::Exited, site)
}

/// Ends the execution: an assumption does not hold.
pub(crate) fn assume_false() -> ! {
    stop(Stop::Assumed, site())
}

/// Reports a bug at `site` and stops the thread.
pub(crate) fn fail(kind: FailureKind, message: String, site: Site) -> ! {
    fail_with(kind, message, site, None)
}

/// Reports a bug that has to do with what lies at `address`, which the message calls
/// [`PLACE`](crate::problem::PLACE).
pub(crate) fn fail_at(kind: FailureKind, message: String, address: usize, site: Site) -> ! {
    with(|runtime| runtime.failure_place = address);
    fail(kind, message, site)
}

/// Reports a bug that has a second party.
pub(crate) fn fail_with(kind: FailureKind, message: String, site: Site, other: Option<Other>) -> ! {
    with(|runtime| {
        let thread = ThreadId(runtime.running as u32);
        runtime.failure.get_or_insert(Failure {
            kind,
            message,
            thread,
            site,
            other,
        });
    });
    stop(Stop::Failed, site)
}

/// Gives up on this program, naming what is not modelled.
pub(crate) fn refuse(what: String, site: Site) -> ! {
    with(|runtime| {
        runtime.refusal.get_or_insert(what);
    });
    stop(Stop::Refused, site)
}

/// Ends a simulation of the running thread in the middle of something.
pub(crate) fn leave_simulation() -> ! {
    stop(Stop::Refused, Site(0))
}

/// Stops the running thread for good.
pub(super) fn stop(stop: Stop, site: Site) -> ! {
    let mut forgotten = Context::NONE;
    let (save, host) = with(|runtime| {
        assert!(
            runtime.phase != Phase::Host,
            "the program cannot stop: it is not running"
        );
        let host = runtime.host;
        runtime.owed.clear();
        // Stored states do not depend on where a thread has stopped in the runtime.
        let keep = !runtime.settings.stateful && runtime.phase == Phase::Fiber;
        runtime.kept = keep.then_some(runtime.running);
        let thread = runtime.current();
        thread.in_flight.clear();
        thread.pending = Pending::Stopped(stop);
        thread.site = site.0 as usize;
        // SAFETY: the gate is mapped while a program is loaded.
        let entered = unsafe {
            (*gate()).attention = 0;
            (*gate()).stores = 0;
            (*gate()).stack_pointer
        };
        // Without an entry, this function's own frame is as deep as the stack goes.
        let here = (&raw const stop).addr();
        let deepest = if entered == 0 { here } else { entered };
        thread.reached(deepest.max(thread.slot.stack_low));
        match keep {
            true => (&raw mut thread.context, host),
            false => (&raw mut forgotten, host),
        }
    });
    // The context is kept for debuggers only.
    // SAFETY: the host is suspended where it started this thread (or the constructors); `save` is this thread's
    // or on its stack.
    unsafe { fiber::switch(save, host) };
    unreachable!("a stopped thread is not continued")
}
