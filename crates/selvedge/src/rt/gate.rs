//! The boundary between a thread's own frames and the checker's.

use std::arch::naked_asm;

use selvedge_core::Op;

use super::engine::{Answer, perform};

/// Calls [`perform`] with the stack pointer below which nothing belongs to the thread: everything
/// that its future depends on lies above, the registers that calls preserve included.
///
/// # Safety
///
/// The pointers must be valid, the last one for writing.
#[unsafe(naked)]
pub(super) unsafe extern "C-unwind" fn enter(op: *const Op, site: u64, answer: *mut Answer) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "push r14",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r14, 0",
        "push r15",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r15, 0",
        "mov rcx, rsp",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {perform}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "pop r15",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r15",
        "pop r14",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r14",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r13",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r12",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
        perform = sym perform,
    )
}
