//! The state that each thread keeps of itself.

use core::arch::{asm, global_asm};

use super::history::{HISTORIES, Seen};
use super::plan::Plan;

/// The state of one thread, in its thread-local memory; all zero is a thread that runs free.
#[repr(C, align(64))]
pub(crate) struct Thread {
    /// The work of the library at its events: [`COUNTING`], [`TRACKING`] or [`SERIAL`].
    pub(crate) active: u8,
    /// Whether a store may still be on its way to the other threads: to keep the order of a store and a
    /// later load, as sequential consistency has it, the load needs a fence.
    pub(crate) dirty: u8,
    /// How many events of the plan were announced to the library but have to be made by the
    /// program, after the callback has returned.
    pub(crate) pending: u8,
    /// Whether the program announced a store before the load of the same statement.
    pub(crate) early: u8,
    /// Its number in the plan.
    pub(crate) index: u32,
    /// Where the program called the library from.
    pub(crate) site: usize,
    /// The number of the next event.
    pub(crate) next: u32,
    /// How many threads it has created.
    pub(crate) children: u32,
    /// The upper end of its stack.
    pub(crate) stack_top: usize,
    /// Its thread-local variables.
    pub(crate) locals: (usize, usize),
    /// The kernel's number of it, once asked for.
    pub(crate) kernel_number: u32,
    /// Counts what the thread did since it looked for a newer prefix.
    pub(crate) since_look: u32,
    /// The plan that numbers its histories.
    pub(crate) plan: *const Plan,
    /// Its past is one of these histories.
    pub(crate) histories: [u32; HISTORIES],
    /// How many more than the first one there are.
    pub(crate) several: u8,
}

/// Events of the plan are still ahead.
pub(crate) const COUNTING: u8 = 1;
/// Its events are compared with histories.
pub(crate) const TRACKING: u8 = 2;
/// It takes turns with the other threads.
pub(crate) const SERIAL: u8 = 4;

/// Where [`Thread::site`] is, for the assembly.
pub(crate) const SITE: usize = core::mem::offset_of!(Thread, site);

global_asm!(
    ".section .tbss,\"awT\",@nobits",
    ".p2align 6",
    ".globl selvedge_thread",
    ".hidden selvedge_thread",
    ".type selvedge_thread, @object",
    "selvedge_thread:",
    ".zero {size}",
    ".size selvedge_thread, {size}",
    ".text",
    size = const size_of::<Thread>(),
);

/// The running thread. The reference is the only one as long as nobody keeps it across a call into the
/// program.
#[inline(always)]
pub(crate) fn current() -> &'static mut Thread {
    let thread: *mut Thread;
    // SAFETY: the address of a thread-local variable of the executable.
    unsafe {
        asm!(
            "mov {thread}, qword ptr fs:[0]",
            "lea {thread}, [{thread} + selvedge_thread@tpoff]",
            thread = out(reg) thread,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    // SAFETY: it exists as long as the thread does, and belongs to it alone.
    unsafe { &mut *thread }
}

/// The thread pointer.
pub(crate) fn pointer() -> usize {
    let pointer: usize;
    // SAFETY: on x86-64 it points to itself.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

impl Thread {
    /// Whether events of the plan are still ahead.
    #[inline(always)]
    pub(crate) fn counts(&self) -> bool {
        self.active & COUNTING != 0
    }

    /// Whether events are compared with histories.
    #[inline(always)]
    pub(crate) fn tracks(&self) -> bool {
        self.active & TRACKING != 0
    }

    /// From now on its events are not compared any more.
    pub(crate) fn untrack(&mut self) -> Seen {
        self.active &= !TRACKING;
        Seen::Fine
    }

    /// Whether an address belongs to the thread: its stack below its first frame, its thread-local
    /// variables.
    pub(crate) fn owns(&self, address: usize) -> bool {
        let frame = &raw const address;
        (frame.addr()..self.stack_top).contains(&address)
            || (self.locals.0..self.locals.1).contains(&address)
    }
}

/// The kernel's number of the running thread, as glibc notes it in mutexes.
pub(crate) fn number() -> u32 {
    let me = current();
    if me.kernel_number == 0 {
        const SYS_GETTID: core::ffi::c_long = 186;
        // SAFETY: nothing to rely on.
        me.kernel_number = unsafe { super::sys::syscall(SYS_GETTID) } as u32;
    }
    me.kernel_number
}
