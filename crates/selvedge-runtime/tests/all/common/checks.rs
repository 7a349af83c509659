//! Checks behind every store in a program's assembly, in the plainest way.
//!
//! The command line finds the stores that matter in machine code; here every instruction whose last
//! operand is in memory counts as one.

use std::fmt::Write as _;

use selvedge_runtime::support::{STORED_EXTENDED, STORES_ADDRESS, STORES_SCRATCH};

/// Instructions that only read the memory that they name last.
const READERS: [&str; 17] = [
    "lea", "cmp", "test", "push", "call", "j", "nop", "ret", "prefetch", "ucomi", "comi", "fld",
    "fild", "mul", "imul", "div", "idiv",
];

/// Puts a check behind every store in `text`.
pub(crate) fn insert(text: &str) -> String {
    let mut checked = String::new();
    for (n, line) in text.lines().enumerate() {
        let code = line.split('#').next().unwrap_or_default().trim();
        let repeats = code.starts_with("rep");
        if repeats {
            let _ = writeln!(checked, "\tmovq %rdi, {STORES_SCRATCH:#x}");
        }
        let _ = writeln!(checked, "{line}");
        let extent = match stored(code) {
            Some((operand, bytes)) => format!("leaq {operand}, %rdi\n\tmovl ${bytes}, %esi"),
            None if repeats => {
                format!("movq %rdi, %rsi\n\tmovq {STORES_SCRATCH:#x}, %rdi\n\tsubq %rdi, %rsi")
            }
            None => continue,
        };
        let saved = STORES_SCRATCH + 8;
        let _ = write!(
            checked,
            "\tmovq %rcx, {saved:#x}\n\tmovq {STORES_ADDRESS:#x}, %rcx\n\tjrcxz 8{n}f\n\tjmp 7{n}f\n\
             8{n}:\tmovq {saved:#x}, %rcx\n6{n}:\n\t.subsection 1\n7{n}:\tmovq {saved:#x}, %rcx\n\
             \tleaq -128(%rsp), %rsp\n\tpushfq\n\tpushq %rdi\n\tpushq %rsi\n\t{extent}\n\
             \tcall {STORED_EXTENDED}@PLT\n\tpopq %rsi\n\tpopq %rdi\n\tpopfq\n\
             \tleaq 128(%rsp), %rsp\n\tjmp 6{n}b\n\t.subsection 0\n"
        );
    }
    checked
}

/// The memory that an instruction writes, and how many bytes of it.
fn stored(code: &str) -> Option<(&str, u32)> {
    let (name, operands) = code.split_once(char::is_whitespace)?;
    if name.starts_with('.') || READERS.iter().any(|reader| name.starts_with(reader)) {
        return None;
    }
    let operands = operands.trim();
    let mut start = 0;
    let mut inside = false;
    for (place, letter) in operands.char_indices() {
        match letter {
            '(' => inside = true,
            ')' => inside = false,
            ',' if !inside => start = place + 1,
            _ => {}
        }
    }
    let last = operands[start..].trim();
    let bytes = match name {
        "movaps" | "movups" | "movdqa" | "movdqu" | "movapd" | "movupd" | "fstpt" => 16,
        "movsd" | "movlpd" | "movhpd" | "movhps" | "movlps" => 8,
        "movss" | "movd" => 4,
        _ if name.starts_with("set") => 1,
        _ => match name.chars().last() {
            Some('b') => 1,
            Some('w') => 2,
            Some('l' | 's') => 4,
            _ => 8,
        },
    };
    let memory = last.ends_with(')') && !last.contains("%rsp") && !last.starts_with('*');
    memory.then_some((last, bytes))
}
