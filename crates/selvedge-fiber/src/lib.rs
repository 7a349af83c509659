//! Switching between the explorer and the threads of the program.
//!
//! A suspended context is one word: the stack pointer below which its callee-saved registers and
//! its return address lie. So a context is saved with the stack it lives on.
//!
//! A general fiber crate such as corosensei does not serve here, for three reasons. Its coroutines own
//! their stacks and keep pointers into them, while searches over states copy stacks away and put them
//! back. Its switches are calls, whose returns the processor mispredicts on the other stack; these are
//! inlined and jump. And it unwinds a coroutine that is dropped before its end, while most fibers here
//! are abandoned in the middle, in code of the program that must not run.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("Selvedge runs programs on x86-64 Linux only");

use std::arch::{asm, naked_asm};
use std::ffi::c_void;

/// A suspended context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Context(usize);

impl Context {
    /// No context.
    pub const NONE: Context = Context(0);

    /// The one that was suspended with this stack pointer, if its stack is as it was then.
    pub const fn suspended_at(stack_pointer: usize) -> Context {
        Context(stack_pointer)
    }

    /// The stack pointer it was suspended with.
    pub fn stack_pointer(self) -> usize {
        self.0
    }
}

/// The function that a fiber runs, with up to three words.
pub type Start = unsafe extern "C-unwind" fn(*mut c_void, usize, usize) -> *mut c_void;
/// The function that a fiber calls with the result; it must not return.
pub type End = extern "C-unwind" fn(*mut c_void) -> !;

/// The frame that [`switch`] pops, lowest address first.
#[repr(C)]
struct Frame {
    r15: usize,
    r14: usize,
    r13: usize,
    r12: usize,
    rbx: usize,
    rbp: usize,
    resume_at: usize,
    /// Keeps the stack aligned for the first call, and ends the chain of frames.
    padding: [usize; 2],
}

/// Prepares a context on the stack that ends at `top`: `end(start(a, b, c))`.
///
/// # Safety
///
/// `top` must be a multiple of 16 with at least 72 writable bytes below it that nothing else uses.
pub unsafe fn prepare(
    top: usize,
    start: Start,
    arguments: (*mut c_void, usize, usize),
    end: End,
) -> Context {
    let at = top - size_of::<Frame>();
    let frame = Frame {
        r15: end as usize,
        r14: arguments.2,
        r13: arguments.1,
        r12: arguments.0.expose_provenance(),
        rbx: start as usize,
        rbp: 0,
        resume_at: begin as *const () as usize,
        padding: [0; 2],
    };
    // SAFETY: the caller vouches for the bytes below `top`.
    unsafe { std::ptr::with_exposed_provenance_mut::<Frame>(at).write(frame) };
    Context(at)
}

/// Continues the context whose stack is current: pops its [`Frame`].
macro_rules! continue_here {
    () => {
        // A jump rather than a return: the processor's return predictor knows nothing of fibers.
        "pop r15\npop r14\npop r13\npop r12\npop rbx\npop rbp\npop rcx\njmp rcx"
    };
}

/// Suspends the running context into `save` and continues with `to`.
///
/// There is neither a call nor a return in it. So if a context is continued after nothing else ran
/// than its peer, in which calls and returns are balanced, the processor still knows where the calls
/// that it is in return to.
///
/// # Safety
///
/// `save` must be writable, and `to` a context that is suspended and has not been continued since.
#[inline(always)]
pub unsafe fn switch(save: *mut Context, to: Context) {
    // SAFETY: everything is as before when this context is continued: registers that calls preserve
    // lie in the frame, and all others are declared to change.
    unsafe {
        asm!(
            "lea rcx, [rip + 2f]",
            "push rcx",
            "push rbp",
            "push rbx",
            "push r12",
            "push r13",
            "push r14",
            "push r15",
            "mov [rdi], rsp",
            "mov rsp, rsi",
            continue_here!(),
            "2:",
            inout("rdi") save => _,
            inout("rsi") to.0 => _,
            clobber_abi("C"),
        );
    }
}

/// Zeroes all registers that calls do not preserve.
macro_rules! clear_registers {
    () => {
        concat!(
            "xor eax, eax\nxor ecx, ecx\nxor edx, edx\nxor esi, esi\nxor edi, edi\n",
            "xor r8d, r8d\nxor r9d, r9d\nxor r10d, r10d\nxor r11d, r11d\n",
            "pxor xmm0, xmm0\npxor xmm1, xmm1\npxor xmm2, xmm2\npxor xmm3, xmm3\n",
            "pxor xmm4, xmm4\npxor xmm5, xmm5\npxor xmm6, xmm6\npxor xmm7, xmm7\n",
            "pxor xmm8, xmm8\npxor xmm9, xmm9\npxor xmm10, xmm10\npxor xmm11, xmm11\n",
            "pxor xmm12, xmm12\npxor xmm13, xmm13\npxor xmm14, xmm14\npxor xmm15, xmm15\n",
        )
    };
}

/// Like [`switch`], for a fiber. When it is continued, nothing that the other context left in registers
/// can get onto its stack.
///
/// The compiler knows that these registers hold nothing of use. But where a value leaves a part of a stack
/// slot unused, the compiler may store a whole register there, and what lies on the stack would depend on
/// what ran before.
///
/// # Safety
///
/// As for [`switch`].
#[inline(always)]
pub unsafe fn switch_from_fiber(save: *mut Context, to: Context) {
    // SAFETY: the caller's promise. What is cleared was declared to change by `switch`.
    unsafe {
        switch(save, to);
        asm!(
            clear_registers!(),
            clobber_abi("C"),
            options(nomem, nostack)
        );
    }
}

/// Continues with `to` and forgets the running context.
///
/// # Safety
///
/// As for [`switch`].
#[unsafe(naked)]
pub unsafe extern "C" fn leave_to(to: Context) -> ! {
    naked_asm!("mov rsp, rdi", continue_here!(),)
}

/// The first code of a fiber. Its missing return address tells unwinders that the stack ends here.
#[unsafe(naked)]
unsafe extern "C" fn begin() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "mov rdi, r12",
        "mov rsi, r13",
        "mov rdx, r14",
        "call rbx",
        "mov rdi, rax",
        "call r15",
        "ud2",
        ".cfi_endproc",
    )
}
