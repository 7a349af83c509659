//! The registers of a call that the runtime passes on to the host's C library ([`super::library`]).

use std::arch::naked_asm;
use std::mem::offset_of;

use super::library::perform;
use crate::gate;

/// How many arguments a function of the table may have in general registers.
pub(crate) const WORDS: usize = gate::ARGUMENTS;
/// How many words of arguments may come on the stack.
pub(crate) const STACK_WORDS: usize = 6;
/// The registers of a call, before and after it.
#[repr(C)]
pub(crate) struct Call {
    pub(crate) words: [usize; WORDS],
    pub(crate) floats: [u64; 8],
    /// Where the arguments lie that came on the stack, and how many words they take.
    pub(crate) stack: usize,
    pub(crate) stack_words: usize,
    /// Whether the result is a `long double`.
    pub(crate) extended: usize,
    pub(crate) results: [usize; 2],
    pub(crate) float_results: [u64; 2],
    pub(crate) extended_result: [u64; 2],
}

/// Where every function of this kind begins.
#[unsafe(naked)]
pub(crate) extern "C" fn enter() {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "sub rsp, {size}",
        "mov [rsp + {words}], rdi",
        "mov [rsp + {words} + 8], rsi",
        "mov [rsp + {words} + 16], rdx",
        "mov [rsp + {words} + 24], rcx",
        "mov [rsp + {words} + 32], r8",
        "mov [rsp + {words} + 40], r9",
        "movq [rsp + {floats}], xmm0",
        "movq [rsp + {floats} + 8], xmm1",
        "movq [rsp + {floats} + 16], xmm2",
        "movq [rsp + {floats} + 24], xmm3",
        "movq [rsp + {floats} + 32], xmm4",
        "movq [rsp + {floats} + 40], xmm5",
        "movq [rsp + {floats} + 48], xmm6",
        "movq [rsp + {floats} + 56], xmm7",
        "lea rax, [rbp + 16]",
        "mov [rsp + {stack}], rax",
        "mov rdi, rsp",
        "call {perform}",
        "mov rax, [rsp + {results}]",
        "mov rdx, [rsp + {results} + 8]",
        "movq xmm0, [rsp + {float_results}]",
        "movq xmm1, [rsp + {float_results} + 8]",
        "cmp qword ptr [rsp + {extended}], 0",
        "je 2f",
        "fld tbyte ptr [rsp + {extended_result}]",
        "2:",
        "leave",
        "ret",
        size = const size_of::<Call>().next_multiple_of(16),
        words = const offset_of!(Call, words),
        floats = const offset_of!(Call, floats),
        stack = const offset_of!(Call, stack),
        extended = const offset_of!(Call, extended),
        results = const offset_of!(Call, results),
        float_results = const offset_of!(Call, float_results),
        extended_result = const offset_of!(Call, extended_result),
        perform = sym perform,
    )
}

/// Calls `function` with the registers of `call`, and keeps what it returns.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn invoke(call: *mut Call, function: usize) {
    naked_asm!(
        "push rbp",
        "mov rbp, rsp",
        "push rbx",
        "sub rsp, {room}",
        "mov rbx, rdi",
        "mov r11, rsi",
        "mov r10, [rbx + {stack}]",
        "mov rcx, [rbx + {stack_words}]",
        "2:",
        "sub rcx, 1",
        "jb 4f",
        "mov rax, [r10 + 8 * rcx]",
        "mov [rsp + 8 * rcx], rax",
        "jmp 2b",
        "4:",
        "mov rdi, [rbx + {words}]",
        "mov rsi, [rbx + {words} + 8]",
        "mov rdx, [rbx + {words} + 16]",
        "mov rcx, [rbx + {words} + 24]",
        "mov r8, [rbx + {words} + 32]",
        "mov r9, [rbx + {words} + 40]",
        "movq xmm0, [rbx + {floats}]",
        "movq xmm1, [rbx + {floats} + 8]",
        "movq xmm2, [rbx + {floats} + 16]",
        "movq xmm3, [rbx + {floats} + 24]",
        "movq xmm4, [rbx + {floats} + 32]",
        "movq xmm5, [rbx + {floats} + 40]",
        "movq xmm6, [rbx + {floats} + 48]",
        "movq xmm7, [rbx + {floats} + 56]",
        "call r11",
        "mov [rbx + {results}], rax",
        "mov [rbx + {results} + 8], rdx",
        "movq [rbx + {float_results}], xmm0",
        "movq [rbx + {float_results} + 8], xmm1",
        "cmp qword ptr [rbx + {extended}], 0",
        "je 3f",
        "fstp tbyte ptr [rbx + {extended_result}]",
        "3:",
        "mov rbx, [rbp - 8]",
        "leave",
        "ret",
        // Keeps the stack aligned, together with what was pushed.
        room = const 8 * STACK_WORDS + 8,
        stack_words = const offset_of!(Call, stack_words),
        words = const offset_of!(Call, words),
        floats = const offset_of!(Call, floats),
        stack = const offset_of!(Call, stack),
        extended = const offset_of!(Call, extended),
        results = const offset_of!(Call, results),
        float_results = const offset_of!(Call, float_results),
        extended_result = const offset_of!(Call, extended_result),
    )
}
