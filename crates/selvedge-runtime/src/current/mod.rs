//! The requests that code on a fiber may make of the runtime: the interface between the machine's
//! insides and the ABI functions (ThreadSanitizer callbacks, pthreads, libc) that the program under
//! test calls.

mod boot;
mod lifecycle;
mod memory;

pub(crate) use lifecycle::{
    assume_false, end_main, exit, fail, fail_at, fail_with, finish, function, leave_simulation,
    next_thread, refuse, result, spawn, standard_input, start_main, variable, variables,
    want_stack,
};
pub(crate) use memory::{
    allocate, block_size, check_range, initialise_object, is_on_stack, is_used_object, location,
    object, queue, release, reusable, reuse, store, touch,
};

use selvedge_core::{MemoryOrder, Op, Outcome, Pending, Site, Stop, ThreadId};

use crate::access::{Access, Problem};
use crate::fiber;
use crate::gate::{Registers, gate};
use crate::loader::Range;
use crate::locations::Part;
use crate::posix::state::Claim;
use crate::problem::report;
use crate::runtime::{Phase, with};
use crate::states::Call;
use crate::tsan::settle;
use crate::visible::Obstacle;
use boot::perform_natively;
use lifecycle::stop;

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

/// Whether clocks move: where states are saved, no state would ever come back if they did.
pub(crate) fn time_passes() -> bool {
    with(|runtime| !runtime.settings.stateful)
}

/// The running thread changes what is known about `thread`.
pub(crate) fn changes(thread: ThreadId) {
    with(|runtime| runtime.changes_thread(thread.index()));
}

/// The runtime is about to write, unannounced, to `size` bytes at `address`.
pub(crate) fn writes(address: usize, size: usize) {
    with(|runtime| {
        runtime.undo.bytes(address, size);
        runtime.wrote(address, size);
    });
}

/// The runtime writes, unannounced, `size` bytes at `address`.
pub(crate) fn wrote(address: usize, size: usize) {
    with(|runtime| runtime.wrote(address, size));
}

/// The runtime writes `size` bytes at `address` that were announced, perhaps before the thread was
/// stopped.
pub(crate) fn writes_range(address: usize, size: usize) {
    with(|runtime| runtime.undo.bytes(address, size));
}

/// The running thread is about to claim `thread`, which was claimed as `before` tells.
pub(crate) fn claims(thread: ThreadId, before: (Option<Claim>, Option<Claim>), contended: bool) {
    with(|runtime| runtime.undo.claims(thread.0, before, contended));
}

/// Whether the memory model has fences.
pub(crate) fn has_fences() -> bool {
    with(|runtime| runtime.settings.fences)
}

/// Whether what is run is to be enforced later.
pub(crate) fn enforced() -> bool {
    with(|runtime| runtime.settings.enforced)
}

/// Whether an allocation may return a block that the thread freed.
pub(crate) fn reuses_memory() -> bool {
    with(|runtime| runtime.settings.reuse_memory && !runtime.settings.stateful)
}

/// Whether waiting on a condition variable may end without a signal.
pub(crate) fn spurious_wakeups() -> bool {
    with(|runtime| runtime.settings.spurious_wakeups)
}

/// Whether the search goes through states instead of executions.
pub(crate) fn keeps_states() -> bool {
    with(|runtime| runtime.settings.stateful)
}

/// Stops before `op`, lets the explorer decide, and returns what it decided.
#[inline]
pub(crate) fn perform(op: Op, site: Site) -> Outcome {
    if booting() {
        return perform_natively(op, site);
    }
    settle_now();
    let outcome = match with(|runtime| runtime.locations.part_touched(&op)) {
        None => pause(&op, &op, site),
        Some(part) => pause_before_part(&op, part, site),
    };
    match with(|runtime| runtime.performed(&op, outcome, site.0 as usize)) {
        Ok(None) => {}
        Ok(Some(write)) => {
            crate::memory::write(write.address, write.width, write.value);
            if write.overlapped {
                tell_others(&op, site);
            }
        }
        Err((problem, access)) => report(problem, access),
    }
    outcome
}

/// Lets the explorer pick a number below `alternatives` in the middle of a call, which goes on as if
/// the thread had just entered the runtime.
pub(crate) fn choose(alternatives: u32, site: Site) -> u32 {
    let entry = Entry::now();
    let picked = perform(Op::Choose { alternatives }, site).read;
    entry.restore();
    picked as u32
}

/// How a thread entered the runtime.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    site: usize,
    stack_pointer: usize,
    registers: Registers,
}

impl Entry {
    /// Of the call that the running thread is in.
    pub(crate) fn now() -> Entry {
        // SAFETY: the gate is mapped while a program is loaded.
        let gate = unsafe { &*gate() };
        Entry {
            site: gate.site,
            stack_pointer: gate.stack_pointer,
            registers: gate.registers,
        }
    }

    /// Makes the running thread, which is still in that call, go on as if it had just entered.
    pub(crate) fn restore(self) {
        if keeps_states() {
            return;
        }
        // SAFETY: the gate is mapped while a program is loaded.
        let gate = unsafe { &mut *gate() };
        gate.site = self.site;
        gate.stack_pointer = self.stack_pointer;
        gate.registers = self.registers;
    }
}

/// Stops before `op`, which touches a part of a merged location.
#[cold]
fn pause_before_part(op: &Op, part: Part, site: Site) -> Outcome {
    let outcome = pause(op, &part.widen(*op), site);
    part.narrow(op, outcome)
}

/// Stops before `op`, which the program is going to make by itself, and is `shown` to the explorer.
#[inline(always)]
pub(crate) fn pause(op: &Op, shown: &Op, site: Site) -> Outcome {
    match with(|runtime| runtime.arrive(op, site.0 as usize)) {
        Ok(()) => {}
        Err(Obstacle::Problem(problem, access)) => report(problem, access),
        Err(Obstacle::Spinning(since)) => {
            with(|runtime| {
                let thread = runtime.current();
                thread.repeated = Some(*shown);
                thread.pending = Pending::Stopped(Stop::Spinning { since });
            });
            // Only a retry lets it go on.
            return suspend(site);
        }
        Err(Obstacle::Unrolled) => stop(Stop::Unrolled, site),
        Err(Obstacle::Unseen(access)) => {
            take_as_own(op, access, site);
            return pause(op, shown, site);
        }
    }
    with(|runtime| runtime.current().pending = Pending::Op(*shown));
    suspend(site)
}

/// The memory that `op` accesses was changed by something that nobody announced. Compilers do not
/// announce what they do with variables that no other thread can know: on the thread's own stack,
/// the change is a store of the thread.
#[cold]
fn take_as_own(op: &Op, access: Access, site: Site) {
    if !with(|runtime| runtime.on_own_stack(access.address)) {
        report(Problem::Unseen, access);
    }
    let Some(at) = op.location() else { return };
    let value = crate::memory::read(access.address, access.size as u8);
    with(|runtime| {
        runtime.note_parts(site.0 as usize);
        runtime.locations.holds(at, value);
    });
    forget_entry();
    let order = MemoryOrder::Plain;
    perform(Op::Store { at, value, order }, site);
}

/// A write changed bytes of other locations too: it is a store to each of them.
#[cold]
fn tell_others(op: &Op, site: Site) {
    let Some(location) = op.location() else {
        return;
    };
    // Kept with the thread, because nothing on its stack may own memory. A store to one of them may come back here.
    let (first, end) = with(|runtime| {
        let others = runtime
            .locations
            .overlapping(runtime.locations.whole(location));
        let parts = &mut runtime.current().parts;
        let first = parts.len();
        parts.extend(others);
        (first, parts.len())
    });
    for number in first..end {
        let (at, value) = with(|runtime| {
            let at = runtime.current().parts[number];
            let entry = *runtime.locations.entry(at);
            let value = crate::memory::read(entry.address, entry.width);
            let changed = entry.lies(runtime.run);
            runtime.note_parts(site.0 as usize);
            runtime.locations.holds(at, value);
            (at, changed.then_some(value))
        });
        if let Some(value) = value {
            forget_entry();
            let order = MemoryOrder::Relaxed;
            perform(Op::Store { at, value, order }, site);
        }
    }
    with(|runtime| runtime.current().parts.truncate(first));
}

/// Gives control to the explorer until it resumes the running thread.
#[inline(always)]
fn suspend(site: Site) -> Outcome {
    let (save, host) = with(|runtime| {
        let host = runtime.host;
        let thread = runtime.current();
        thread.site = site.0 as usize;
        // SAFETY: the gate is mapped while a program is loaded.
        thread.stopped_at = unsafe { (*gate()).stack_pointer };
        (&raw mut thread.context, host)
    });
    // SAFETY: the gate is mapped while a program is loaded.
    let in_flight = std::mem::take(unsafe { &mut (*gate()).stores });
    if in_flight != 0 {
        settle::pause();
    }
    // SAFETY: the host is suspended in `resume`; `save` belongs to the running thread. The threads
    // may move while this one is suspended, but `save` is used only before that.
    unsafe { fiber::switch(save, host) };
    forget_entry();
    if in_flight != 0 {
        go_on_storing();
    }
    with(|runtime| runtime.current().outcome)
}

/// The running thread, which has stores in flight, goes on.
#[cold]
fn go_on_storing() {
    with(|runtime| runtime.renew_in_flight());
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stores = 1 };
}

/// The gate's notes do not describe the running thread any more.
pub(crate) fn forget_entry() {
    // SAFETY: the gate is mapped while a program is loaded.
    unsafe { (*gate()).stack_pointer = 0 };
}

/// The running thread is in the runtime without having been called by the program.
pub(crate) fn forget_call() {
    forget_entry();
    with(|runtime| runtime.current().call = Call::default());
}

/// The running thread looks whether a mutex of the program is held.
pub(crate) fn looks_at_lock() {
    with(|runtime| {
        if runtime.settings.watch_locks {
            runtime.misjudged |= runtime.facts.try_lock();
        }
    });
}

/// The bytes that functions of libc may use of the stack below their caller.
const DEEP: usize = 16 << 10;

/// Notes that the thread did something a pure iteration cannot do (allocation, output, …).
pub(crate) fn impure() {
    with(|runtime| runtime.current().spin.effect());
    goes_deep();
}

/// Notes that the thread is about to call into the host's C library.
pub(crate) fn goes_deep() {
    // SAFETY: the gate is mapped while a program is loaded.
    let stack_pointer = unsafe { (*gate()).stack_pointer };
    with(|runtime| {
        let thread = runtime.current();
        if stack_pointer != 0 {
            thread.reached(
                stack_pointer
                    .saturating_sub(DEEP)
                    .max(thread.slot.stack_low),
            );
        }
    });
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

/// The program gets to know `address`, which is the runtime's own, and may access this many bytes there.
pub(crate) fn expose(address: usize, size: usize) {
    with(|runtime| {
        let range = Range {
            start: address,
            end: address + size,
        };
        let exposed = &mut runtime.exposed;
        if !exposed.contains(&range) {
            exposed.push(range);
        }
    });
}

/// Whether the program's output is shown (on replay) rather than swallowed.
pub(crate) fn output_shown() -> bool {
    with(|runtime| runtime.settings.show_output)
}
