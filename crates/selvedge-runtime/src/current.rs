//! What code that runs on a fiber may ask of the runtime: the interface between the machine's
//! insides and the ABI functions (ThreadSanitizer callbacks, pthreads, libc) that the program
//! under test calls.

use std::ffi::c_void;

use selvedge_core::failure::Other;
use selvedge_core::{
    Effect, Failure, FailureKind, Location, MemoryOrder, Op, Outcome, Pending, Site, Stop,
    ThreadId, Value, Width,
};

use crate::access::{Access, Step};
use crate::arena::pointer;
use crate::fiber::{self, Start};
use crate::gate::gate;
use crate::locations::Kind;
use crate::memory;
use crate::posix;
use crate::problem::{report, report_free};
use crate::runtime::{Phase, with};
use crate::shadow::Kind as AccessKind;
use crate::tsan::plain::{self, By};
use crate::tsan::settle;
use crate::visible::Obstacle;

/// The thread whose fiber is running.
pub(crate) fn thread() -> ThreadId {
    with(|runtime| ThreadId(runtime.running as u32))
}

/// Whether the program's constructors are still running (no fibers yet; everything is executed
/// at once and natively).
#[inline(always)]
pub(crate) fn booting() -> bool {
    with(|runtime| runtime.phase != Phase::Fiber)
}

/// Where the program called into the runtime. Ask at the entry: program code that runs later (a
/// callback) overwrites it.
#[inline(always)]
pub(crate) fn site() -> Site {
    // SAFETY: the gate is mapped while a program is loaded.
    Site(unsafe { (*gate()).site } as u64)
}

/// The program's stack pointer when it called into the runtime.
pub(crate) fn stack_pointer() -> usize {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stack_pointer }
}

/// The upper end of the running thread's stack.
pub(crate) fn stack_top() -> usize {
    with(|runtime| runtime.current().slot.stack_top)
}

/// Whether `thread` has been created in this execution.
pub(crate) fn exists(thread: ThreadId) -> bool {
    with(|runtime| runtime.exists(thread.index()))
}

/// The number of events that happen before the present point of the running thread: grows along
/// happens-before and does not depend on the interleaving.
pub(crate) fn clock_sum() -> u64 {
    with(|runtime| {
        runtime
            .current()
            .clock
            .iter()
            .map(|&count| u64::from(count))
            .sum()
    })
}

/// The present moment of the running thread, to be asked about later.
pub(crate) fn moment() -> (ThreadId, u32) {
    with(|runtime| {
        let running = runtime.running;
        (
            ThreadId(running as u32),
            runtime.threads[running].clock[running],
        )
    })
}

/// Whether a moment happens before the present point of the running thread.
pub(crate) fn knows((thread, epoch): (ThreadId, u32)) -> bool {
    with(|runtime| thread.index() == runtime.running || runtime.view().knows(thread.index(), epoch))
}

/// Whether waiting on a condition variable may end without a signal.
pub(crate) fn spurious_wakeups() -> bool {
    with(|runtime| runtime.settings.spurious_wakeups)
}

/// Stops before `op`, lets the explorer decide, and returns what it decided.
#[inline]
pub(crate) fn perform(op: Op, site: Site) -> Outcome {
    if booting() {
        return perform_natively(op, site);
    }
    settle_now();
    let at = site.0 as usize;
    match with(|runtime| runtime.arrive(&op, at)) {
        Ok(()) => {}
        Err(Obstacle::Problem(problem, access)) => report(problem, access),
        Err(Obstacle::Spinning(since)) => stop(Stop::Spinning { since }, site),
        Err(Obstacle::Unrolled) => stop(Stop::Unrolled, site),
    }
    let outcome = suspend(op, site);
    match with(|runtime| runtime.performed(&op, outcome, at)) {
        Ok(None) => {}
        Ok(Some(write)) => memory::write(write.address, write.width, write.value),
        Err((problem, access)) => report(problem, access),
    }
    outcome
}

/// Gives control to the explorer until it resumes the running thread.
#[inline(always)]
fn suspend(op: Op, site: Site) -> Outcome {
    let (save, host) = with(|runtime| {
        let host = runtime.host;
        let thread = runtime.current();
        thread.pending = Pending::Op(op);
        thread.site = site.0 as usize;
        (&raw mut thread.context, host)
    });
    // SAFETY: the host is suspended in `resume`; `save` belongs to the running thread. The threads
    // may move while this one is suspended, but `save` is used only before that.
    unsafe { fiber::switch(save, host) };
    forget_entry();
    with(|runtime| runtime.current().outcome)
}

/// Whatever the gate noted does not describe the running thread any more.
pub(crate) fn forget_entry() {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stack_pointer = 0 };
}

/// While constructors run there is one thread, and memory is what it says.
fn perform_natively(op: Op, site: Site) -> Outcome {
    let at = |location: Location| with(|runtime| *runtime.locations.entry(location));
    match op {
        Op::Load { at: location, .. } => {
            let entry = at(location);
            Outcome {
                read: memory::read(entry.address, entry.width),
                wrote: None,
            }
        }
        Op::Store {
            at: location,
            value,
            ..
        } => {
            let entry = at(location);
            memory::write(entry.address, entry.width, value);
            Outcome::default()
        }
        Op::Update {
            at: location,
            function,
            ..
        } => {
            let entry = at(location);
            let read = memory::read(entry.address, entry.width);
            let wrote = match function.apply(read) {
                Effect::Write(value) => Some(value),
                Effect::Keep => None,
                Effect::Choose(_) => Some(function.choose(read, 0)),
                Effect::Block => refuse("waiting before `main`".to_owned(), site),
            };
            if let Some(value) = wrote {
                memory::write(entry.address, entry.width, value);
            }
            Outcome { read, wrote }
        }
        Op::Fence { .. } | Op::JoinAll => Outcome::default(),
        Op::Create { .. } | Op::Join { .. } => refuse("threads before `main`".to_owned(), site),
        Op::Choose { .. } => refuse("choices before `main`".to_owned(), site),
    }
}

/// The location of `width` bytes of memory at `address`.
pub(crate) fn location(address: usize, width: Width) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, width.0, Kind::Memory)
    })
}

/// The location of the synchronisation object at `address`. Its state before the first visible
/// operation is the number of `width` bytes (4: once, spin lock, static guard; 8: the others)
/// stored there.
pub(crate) fn object(address: usize, width: Width) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, width.0, Kind::Object)
    })
}

/// The queue of those who wait for the word at `address`, which knows nothing of the queue: empty
/// at first.
pub(crate) fn queue(address: usize) -> Location {
    with(|runtime| {
        runtime
            .locations
            .number(&runtime.shadow, address, 4, Kind::Queue)
    })
}

/// (Re)initialises the object at `address` with abstract state `value`: a plain write as far as
/// races are concerned, a visible store if the object was used before in this execution.
pub(crate) fn initialise_object(address: usize, width: Width, value: u64, site: Site) {
    let size = usize::from(width.0);
    let access = Access {
        address,
        size,
        kind: AccessKind::PlainWrite,
        site: site.0 as usize,
    };
    match with(|runtime| runtime.initialise(access)) {
        Step::Go => memory::write(address, width.0, Value::from(value)),
        Step::Event => {
            let (at, value) = (object(address, width), Value::from(value));
            perform(
                Op::Store {
                    at,
                    value,
                    order: MemoryOrder::Relaxed,
                },
                site,
            );
        }
        Step::Stop(problem) => report(problem, access),
    }
}

/// A plain access of `size` bytes that the compiler did not announce (made by a libc function on
/// the program's behalf).
pub(crate) fn touch(address: usize, size: usize, write: bool, site: Site) {
    plain::range(address, size, write, site, By::Library);
}

/// A plain store of `width` bytes that the compiler did not announce: an event where a store in the
/// program would be one.
pub(crate) fn store(address: usize, width: Width, value: u64, site: Site) {
    plain::store(address, width.0, Value::from(value), site);
}

/// What functions of libc may use of the stack below their caller.
const DEEP: usize = 16 << 10;

/// Notes that the thread did something a pure iteration cannot do (allocation, output, …).
pub(crate) fn impure() {
    // SAFETY: the gate is mapped while a program is loaded.
    let stack_pointer = unsafe { (*gate()).stack_pointer };
    with(|runtime| {
        let thread = runtime.current();
        thread.spin.effect();
        if stack_pointer != 0 {
            thread.reached(
                stack_pointer
                    .saturating_sub(DEEP)
                    .max(thread.slot.stack_low),
            );
        }
    });
}

/// The number that the next [`spawn`] of the running thread will return; the program may store it
/// where the new thread reads it.
pub(crate) fn next_thread() -> ThreadId {
    match with(|runtime| runtime.next_child()) {
        Ok(child) => ThreadId(child as u32),
        Err(why) => refuse(why, site()),
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
        let arguments = thread.slot.stack_top - 64;
        let name = arguments + 32;
        // SAFETY: the top of a committed stack that nothing runs on.
        unsafe {
            pointer::<[usize; 4]>(arguments).write([name, 0, 0, 0]);
            pointer::<[u8; 8]>(name).write(*b"program\0");
        }
        let count = pointer(1);
        // SAFETY: as above, below the arguments.
        thread.context = unsafe {
            let words = (count, arguments, arguments + 16);
            fiber::prepare(arguments, start, words, posix::after_main)
        };
    });
}

/// Ends the running thread with `result`, which a join returns.
pub(crate) fn finish(result: *mut c_void) -> ! {
    settle_now();
    with(|runtime| runtime.current().result = result);
    stop(Stop::Finished, site())
}

/// Performs a store that was announced and is still to be performed. Entries through a stub do that
/// by themselves.
#[inline(always)]
pub(crate) fn settle_now() {
    // SAFETY: the gate is mapped while a program is loaded.
    if unsafe { (*gate()).attention } != 0 {
        settle::now();
    }
}

/// The result of a thread that has finished (ask after an [`Op::Join`]).
pub(crate) fn result(thread: ThreadId) -> *mut c_void {
    with(|runtime| runtime.threads[thread.index()].result)
}

/// Ends the process as far as the running thread is concerned.
pub(crate) fn exit() -> ! {
    stop(Stop::Exited, site())
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

/// Stops the running thread for good.
fn stop(stop: Stop, site: Site) -> ! {
    let host = with(|runtime| {
        assert!(
            runtime.phase != Phase::Host,
            "the program cannot stop: it is not running"
        );
        let host = runtime.host;
        runtime.deferred = None;
        runtime.deferred_parts.clear();
        let thread = runtime.current();
        thread.pending = Pending::Stopped(stop);
        thread.site = site.0 as usize;
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe {
            (*gate()).attention = 0;
            thread.reached((*gate()).stack_pointer.max(thread.slot.stack_low));
        }
        host
    });
    // SAFETY: the host is suspended where it started this thread (or the constructors).
    unsafe { fiber::leave_to(host) }
}

/// Allocates from the running thread's heap; `None` when the limit is reached.
pub(crate) fn allocate(size: usize, alignment: usize, site: Site) -> Option<*mut c_void> {
    with(|runtime| {
        let left = runtime
            .settings
            .heap_limit
            .saturating_sub(runtime.heap_used);
        if size > left {
            return None;
        }
        let index = runtime.running;
        let thread = &mut runtime.threads[index];
        thread.spin.effect();
        let before = thread.heap.used();
        let start = thread
            .heap
            .take(size, alignment, (ThreadId(index as u32), site))?;
        runtime.heap_used += thread.heap.used() - before;
        Some(pointer(start))
    })
}

/// Frees a block; reports double and bad frees, and accesses that nothing orders before it.
pub(crate) fn release(block: *mut c_void, site: Site) {
    if !block.is_null()
        && let Err(problem) = with(|runtime| runtime.free(block.addr(), site))
    {
        report_free(problem, block.addr(), site);
    }
}

/// The size of a live block, `None` if `block` is not the start of one.
pub(crate) fn block_size(block: *mut c_void) -> Option<usize> {
    with(|runtime| {
        let found = runtime.block_near(block.addr())?;
        let live = found.start as usize == block.addr() && found.freed.is_none();
        live.then_some(found.size as usize)
    })
}

/// Whether the program's output is shown (on replay) rather than swallowed.
pub(crate) fn output_shown() -> bool {
    with(|runtime| runtime.settings.show_output)
}
