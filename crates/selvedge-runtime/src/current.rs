//! What code that runs on a fiber may ask of the runtime: the interface between the machine's
//! insides and the ABI functions (ThreadSanitizer callbacks, pthreads, libc) that the program
//! under test calls.

use std::ffi::c_void;

use selvedge_core::{FailureKind, Location, Op, Outcome, Site, ThreadId, Width};

/// The thread whose fiber is running.
pub(crate) fn thread() -> ThreadId {
    unimplemented!()
}

/// Whether the program's constructors are still running (no fibers yet; everything is executed
/// at once and natively).
pub(crate) fn booting() -> bool {
    unimplemented!()
}

/// Where the program called into the runtime. Ask at the entry: program code that runs later (a
/// callback) overwrites it.
pub(crate) fn site() -> Site {
    unimplemented!()
}

/// Whether `thread` has been created in this execution.
pub(crate) fn exists(thread: ThreadId) -> bool {
    let _ = thread;
    unimplemented!()
}

/// The number of events that happen before the present point of the running thread: grows along
/// happens-before and does not depend on the interleaving.
pub(crate) fn clock_sum() -> u64 {
    unimplemented!()
}

/// Whether waiting on a condition variable may end without a signal.
pub(crate) fn spurious_wakeups() -> bool {
    unimplemented!()
}

/// Stops before `op`, lets the explorer decide, and returns what it decided.
pub(crate) fn perform(op: Op, site: Site) -> Outcome {
    let _ = (op, site);
    unimplemented!()
}

/// The location of the synchronisation object at `address`. Its state before the first visible
/// operation is the number of `width` bytes (4: once, spin lock, static guard; 8: the others)
/// stored there.
pub(crate) fn object(address: usize, width: Width) -> Location {
    let _ = (address, width);
    unimplemented!()
}

/// (Re)initialises the object at `address` with abstract state `value`: a plain write as far as
/// races are concerned, a visible store if the object was used before in this execution.
pub(crate) fn initialise_object(address: usize, width: Width, value: u64, site: Site) {
    let _ = (address, width, value, site);
    unimplemented!()
}

/// A plain access of `size` bytes that the compiler did not announce (made by a libc function on
/// the program's behalf).
pub(crate) fn touch(address: usize, size: usize, write: bool, site: Site) {
    let _ = (address, size, write, site);
    unimplemented!()
}

/// A plain store of `width` bytes that the compiler did not announce: an event where a store in the
/// program would be one.
pub(crate) fn store(address: usize, width: Width, value: u64, site: Site) {
    let _ = (address, width, value, site);
    unimplemented!()
}

/// Notes that the thread did something a pure iteration cannot do (allocation, output, …).
pub(crate) fn impure() {
    unimplemented!()
}

/// The number that the next [`spawn`] of the running thread will return; the program may store it
/// where the new thread reads it.
pub(crate) fn next_thread() -> ThreadId {
    unimplemented!()
}

/// Starts a thread: creates its fiber and performs the [`Op::Create`].
pub(crate) fn spawn(
    start: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    site: Site,
) -> ThreadId {
    let _ = (start, argument, site);
    unimplemented!()
}

/// Ends the running thread with `result`, which a join returns.
pub(crate) fn finish(result: *mut c_void) -> ! {
    let _ = result;
    unimplemented!()
}

/// The result of a thread that has finished (ask after an [`Op::Join`]).
pub(crate) fn result(thread: ThreadId) -> *mut c_void {
    let _ = thread;
    unimplemented!()
}

/// Ends the process as far as the running thread is concerned.
pub(crate) fn exit() -> ! {
    unimplemented!()
}

/// Ends the execution: an assumption does not hold.
pub(crate) fn assume_false() -> ! {
    unimplemented!()
}

/// Reports a bug at `site` and stops the thread.
pub(crate) fn fail(kind: FailureKind, message: String, site: Site) -> ! {
    let _ = (kind, message, site);
    unimplemented!()
}

/// Gives up on this program, naming what is not modelled.
pub(crate) fn refuse(what: String, site: Site) -> ! {
    let _ = (what, site);
    unimplemented!()
}

/// Allocates from the running thread's heap; `None` when the limit is reached.
pub(crate) fn allocate(size: usize, alignment: usize, site: Site) -> Option<*mut c_void> {
    let _ = (size, alignment, site);
    unimplemented!()
}

/// Frees a block; reports double and bad frees, and accesses that nothing orders before it.
pub(crate) fn release(block: *mut c_void, site: Site) {
    let _ = (block, site);
    unimplemented!()
}

/// The size of a live block, `None` if `block` is not the start of one.
pub(crate) fn block_size(block: *mut c_void) -> Option<usize> {
    let _ = block;
    unimplemented!()
}

/// Whether the program's output is shown (on replay) rather than swallowed.
pub(crate) fn output_shown() -> bool {
    unimplemented!()
}
