//! The assembly that every executable gets: space for notes, and detours for calls at places that
//! were never reached.

use std::fmt::Write as _;

use selvedge_enforce::{ARENA, SYMBOL, hold};

use super::calls::Callee;

/// The name of a detour.
pub(super) fn name(callee: &str) -> String {
    format!("selvedge_unreached_{callee}")
}

/// The detour for a load that is announced between a store and its callback.
pub(super) const UNREACHED_BETWEEN: &str = "selvedge_unreached_between";

/// The functions of the library that detours go through first.
const CHECK_ACCESS: &str = "selvedge_check_access";
const CHECK_OPERATION: &str = "selvedge_check_operation";

const ARGUMENTS: [&str; 6] = ["rdi", "rsi", "rdx", "rcx", "r8", "r9"];

/// The assembly for a program that calls the functions `used`, with `room` bytes for notes.
pub(super) fn assembly(used: &[String], room: usize) -> String {
    let mut text = format!(
        "\t.section .selvedge.notes,\"a\",@progbits\n\t.p2align 4\n\
         \t.globl {SYMBOL}\n\t.hidden {SYMBOL}\n\t.type {SYMBOL}, @object\n\
         {SYMBOL}:\n\t.zero {room}\n\t.size {SYMBOL}, {room}\n"
    );
    let (arena, size, alignment) = ARENA;
    let _ = write!(
        text,
        "\t.bss\n\t.balign {alignment}\n\t.globl {arena}\n\t.hidden {arena}\n\t.type {arena}, @object\n\
         {arena}:\n\t.zero {size}\n\t.size {arena}, {size}\n\t.text\n"
    );
    for callee in used {
        match Callee::of(callee) {
            Callee::Access(access) => access_detour(&mut text, callee, access.how()),
            Callee::Operation => operation_detour(&mut text, callee),
            _ => {}
        }
    }
    let _ = write!(
        text,
        "\t.globl {UNREACHED_BETWEEN}\n\t.hidden {UNREACHED_BETWEEN}\n\t.type {UNREACHED_BETWEEN}, @function\n\
         {UNREACHED_BETWEEN}:\n\tmovq (%rsp), %rsi\n\txorl %edx, %edx\n\tpushq %rdi\n\tcall {CHECK_ACCESS}\n\
         \tpopq %rdi\n\tjmp selvedge_between_read\n"
    );
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    text
}

fn begin(text: &mut String, callee: &str) {
    let name = name(callee);
    let _ = write!(
        text,
        "\t.globl {name}\n\t.hidden {name}\n\t.type {name}, @function\n{name}:\n"
    );
}

fn access_detour(text: &mut String, callee: &str, how: u32) {
    begin(text, callee);
    let _ = write!(
        text,
        "\tmovq (%rsp), %rsi\n\tmovl ${how}, %edx\n\tpushq %rdi\n\tcall {CHECK_ACCESS}\n\
         \tpopq %rdi\n\tjmp {callee}\n"
    );
}

fn operation_detour(text: &mut String, callee: &str) {
    begin(text, callee);
    for register in ARGUMENTS {
        let _ = writeln!(text, "\tpushq %{register}");
    }
    let above = 8 * ARGUMENTS.len() + 8;
    let hold = no_event_if(callee);
    let _ = write!(
        text,
        "\tsubq $8, %rsp\n\tmovq %rdi, %rsi\n\tmovq {above}(%rsp), %rdi\n\tmovl ${hold}, %edx\n\
         \tcall {CHECK_OPERATION}\n\taddq $8, %rsp\n"
    );
    for register in ARGUMENTS.iter().rev() {
        let _ = writeln!(text, "\tpopq %{register}");
    }
    let _ = writeln!(text, "\tjmp {callee}");
}

/// How the thread holds the object that `callee` is given, if that makes it no event.
fn no_event_if(callee: &str) -> u32 {
    let name = callee.strip_prefix("__wrap_").unwrap_or(callee);
    let (object, operation) = match name.rsplit_once('_') {
        Some(parts) => parts,
        None => return hold::INDIFFERENT,
    };
    match (object, operation) {
        ("pthread_mutex" | "mtx", "unlock") => hold::MUTEX_GIVEN,
        ("pthread_mutex" | "mtx", _) if operation.ends_with("lock") => hold::MUTEX_TAKEN,
        ("pthread_rwlock", "unlock" | "tryrdlock" | "trywrlock") => hold::INDIFFERENT,
        ("pthread_rwlock", _) if operation.ends_with("lock") => hold::LOCK_TAKEN,
        _ => hold::INDIFFERENT,
    }
}
