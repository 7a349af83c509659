//! Announced accesses: the callbacks of gcc and clang for plain and volatile memory.
//!
//! A thread that is past the prefix pays for a test of its own flags. The verifier's memory is
//! sequentially consistent and the processor's is not: where a load follows a store, a fence keeps
//! them in order.

use core::arch::global_asm;

use super::event::{self, VOLATILE, WRITES};
use super::thread;

// How each of the callbacks below goes on. The address is in `rdi`, the kind of access goes to `edx`.
global_asm!(
    ".text",
    // A load: what was stored before has to be there first.
    ".p2align 4",
    "selvedge_slow_read:",
    "cmp byte ptr fs:[selvedge_thread@tpoff + 1], 0",
    "je 2f",
    "lock or dword ptr [rsp - 8], 0",
    "mov byte ptr fs:[selvedge_thread@tpoff + 1], 0",
    "2: cmp byte ptr fs:[selvedge_thread@tpoff], 0",
    "jne selvedge_slow_access",
    "ret",
    ".p2align 4",
    "selvedge_slow_access:",
    "mov rsi, qword ptr [rsp]",
    "jmp {announced}",
    // The same for places whose accesses nobody has to wait for or to count. The thread may still
    // have something to tell.
    ".globl selvedge_free_read",
    ".hidden selvedge_free_read",
    ".p2align 4",
    "selvedge_free_read:",
    "cmp word ptr fs:[selvedge_thread@tpoff + 1], 0",
    "jne 2f",
    "ret",
    "2: cmp byte ptr fs:[selvedge_thread@tpoff + 1], 0",
    "je 3f",
    "lock or dword ptr [rsp - 8], 0",
    "mov byte ptr fs:[selvedge_thread@tpoff + 1], 0",
    "3: cmp byte ptr fs:[selvedge_thread@tpoff + 2], 0",
    "jne {settle}",
    "ret",
    ".globl selvedge_free_write",
    ".hidden selvedge_free_write",
    ".p2align 4",
    "selvedge_free_write:",
    "mov byte ptr fs:[selvedge_thread@tpoff + 1], 1",
    "cmp byte ptr fs:[selvedge_thread@tpoff + 2], 0",
    "jne {settle}",
    "ret",
    // A load that comes before a store that was announced already, so that the store is still to come.
    ".globl selvedge_between_read",
    ".hidden selvedge_between_read",
    ".p2align 4",
    "selvedge_between_read:",
    "cmp word ptr fs:[selvedge_thread@tpoff], 0",
    "jne 2f",
    "ret",
    "2: cmp byte ptr fs:[selvedge_thread@tpoff + 1], 0",
    "je 3f",
    "lock or dword ptr [rsp - 8], 0",
    "3: cmp byte ptr fs:[selvedge_thread@tpoff], 0",
    "je 4f",
    "mov rsi, qword ptr [rsp]",
    "jmp {between}",
    "4: ret",
    // The end of a function, which may come a while before the next access.
    ".globl __tsan_func_exit",
    ".hidden __tsan_func_exit",
    ".p2align 4",
    "__tsan_func_exit:",
    "cmp byte ptr fs:[selvedge_thread@tpoff + 2], 0",
    "jne {settle}",
    "ret",
    // For the checks behind stores, which are taken out of executables.
    ".weak selvedge_stored, selvedge_stored_short, selvedge_stored_extended",
    ".hidden selvedge_stored, selvedge_stored_short, selvedge_stored_extended",
    "selvedge_stored:",
    "selvedge_stored_short:",
    "selvedge_stored_extended: ud2",
    // For frames, which only the verifier clears.
    ".weak selvedge_clear_frame",
    ".hidden selvedge_clear_frame",
    "selvedge_clear_frame: ret 8",
    // The calls at unknown places are directed here.
    ".globl selvedge_check_access, selvedge_check_operation",
    ".hidden selvedge_check_access, selvedge_check_operation",
    "selvedge_check_access: jmp {unreached}",
    "selvedge_check_operation: jmp {operation}",
    announced = sym event::announced,
    between = sym event::announced_between,
    settle = sym settle,
    unreached = sym event::unreached,
    operation = sym event::unreached_operation,
);

/// Defines callbacks for one width: name, what it does, and how it is told.
macro_rules! callbacks {
    ($($name:literal $way:ident $how:expr),* $(,)?) => {
        $(
            callbacks!(@$way $name, $how);
            callbacks!(@$way concat!("unaligned_", $name), $how);
        )*
    };
    (@read $name:expr, $how:expr) => {
        global_asm!(
            concat!(".globl __tsan_", $name),
            concat!(".hidden __tsan_", $name),
            concat!(".type __tsan_", $name, ", @function"),
            ".p2align 4",
            concat!("__tsan_", $name, ":"),
            "mov edx, {how}",
            "cmp word ptr fs:[selvedge_thread@tpoff], 0",
            "jne selvedge_slow_read",
            "ret",
            how = const $how,
        );
    };
    (@write $name:expr, $how:expr) => {
        global_asm!(
            concat!(".globl __tsan_", $name),
            concat!(".hidden __tsan_", $name),
            concat!(".type __tsan_", $name, ", @function"),
            ".p2align 4",
            concat!("__tsan_", $name, ":"),
            "mov edx, {how}",
            "mov byte ptr fs:[selvedge_thread@tpoff + 1], 1",
            "cmp byte ptr fs:[selvedge_thread@tpoff], 0",
            "jne selvedge_slow_access",
            "ret",
            how = const $how | WRITES,
        );
    };
}

callbacks![
    "read1" read 1, "read2" read 2, "read4" read 4, "read8" read 8, "read16" read 16,
    "write1" write 1, "write2" write 2, "write4" write 4, "write8" write 8, "write16" write 16,
    "volatile_read1" read 1 | VOLATILE, "volatile_read2" read 2 | VOLATILE,
    "volatile_read4" read 4 | VOLATILE, "volatile_read8" read 8 | VOLATILE,
    "volatile_read16" read 16 | VOLATILE,
    "volatile_write1" write 1 | VOLATILE, "volatile_write2" write 2 | VOLATILE,
    "volatile_write4" write 4 | VOLATILE, "volatile_write8" write 8 | VOLATILE,
    "volatile_write16" write 16 | VOLATILE,
];

/// A load and a store of the same variable: the compiler makes both after one callback, so both
/// have to be allowed at once.
macro_rules! compound {
    ($($name:literal),*) => {
        $(
            global_asm!(
                concat!(".globl __tsan_", $name),
                concat!(".hidden __tsan_", $name),
                concat!(".type __tsan_", $name, ", @function"),
                ".p2align 4",
                concat!("__tsan_", $name, ":"),
                "mov rsi, qword ptr [rsp]",
                "jmp {both}",
                both = sym read_write,
            );
        )*
    };
}

compound![
    "read_write1",
    "read_write2",
    "read_write4",
    "read_write8",
    "read_write16",
    "unaligned_read_write1",
    "unaligned_read_write2",
    "unaligned_read_write4",
    "unaligned_read_write8",
    "unaligned_read_write16"
];

extern "C" fn read_write(address: usize, site: usize) {
    let me = thread::current();
    if core::mem::replace(&mut me.dirty, 1) != 0 {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }
    if me.active != 0 {
        event::announced(address, site, 0);
        event::announced_too(site);
    }
}

extern "C" fn settle() {
    event::settle(thread::current());
}

// Callbacks that need no work, and those for pointers to tables of virtual functions.
global_asm!(
    ".globl __tsan_func_entry, __tsan_init, __tsan_ignore_thread_begin, __tsan_ignore_thread_end",
    ".hidden __tsan_func_entry, __tsan_init, __tsan_ignore_thread_begin, __tsan_ignore_thread_end",
    ".p2align 4",
    "__tsan_func_entry:",
    "__tsan_init:",
    "__tsan_ignore_thread_begin:",
    "__tsan_ignore_thread_end:",
    "ret",
    ".globl __tsan_vptr_read, __tsan_vptr_update",
    ".hidden __tsan_vptr_read, __tsan_vptr_update",
    "__tsan_vptr_read: jmp __tsan_read8",
    "__tsan_vptr_update: jmp __tsan_write8",
);
