//! The registers that the program has written since the last callback.
//!
//! A callback leaves leftovers in all registers that calls do not preserve. The compiler knows that
//! and uses none of them before it has written to it, so they need not be saved. Where that is not
//! easy to see, all of them are kept.

use std::collections::HashSet;

use super::assembly::without_comment;
use super::frames;

/// Callbacks that return nothing. They are called by name, so that no compiler can know what they
/// leave alone.
const CALLBACKS: [&str; 5] = [
    "__tsan_func_",
    "__tsan_read",
    "__tsan_write",
    "__tsan_unaligned_",
    "__tsan_volatile_",
];

/// Instructions that write to nothing but operands that they name.
const PLAIN: [&str; 41] = [
    "addl", "addq", "andl", "andq", "cmpb", "cmpl", "cmpq", "cmpw", "leal", "leaq", "movabsq",
    "movaps", "movapd", "movb", "movd", "movdqa", "movdqu", "movl", "movq", "movsbl", "movslq",
    "movss", "movswl", "movups", "movw", "movzbl", "movzwl", "nop", "orl", "orq", "pxor", "sall",
    "salq", "shrl", "shrq", "subl", "subq", "testb", "testl", "testq", "xorl",
];

/// The registers that calls preserve, by the names that [`full`] gives.
const PRESERVED: [&str; 8] = ["rbx", "bp", "r12", "r13", "r14", "r15", "sp", "ip"];

/// The instructions that do not change the flags.
const MOVES: [&str; 3] = ["lea", "mov", "nop"];

/// The registers that were written since the last callback, in straight code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fresh {
    /// Registers that were named since, by their full names.
    named: HashSet<String>,
    flags: bool,
}

impl Fresh {
    /// The registers that were written in `lines` of assembly. `None` if that is not clear.
    pub(super) fn before(lines: &[&str]) -> Option<Fresh> {
        let mut fresh = Fresh {
            named: HashSet::new(),
            flags: false,
        };
        for line in lines.iter().rev() {
            if matches!(line.trim(), "#APP" | "#NO_APP") {
                return None;
            }
            let code = without_comment(line).trim();
            let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
            match name {
                "" | ".loc" | ".cfi_def_cfa_offset" | ".cfi_offset" => {}
                "call" | "callq" => {
                    let told = CALLBACKS
                        .iter()
                        .any(|callback| operands.trim().starts_with(callback));
                    return told.then_some(fresh);
                }
                _ if is_for_debuggers(name) || is_branch(name) => {}
                _ if PLAIN.contains(&name) => {
                    fresh.named.extend(registers(operands));
                    fresh.flags |= !MOVES.iter().any(|moves| name.starts_with(moves));
                }
                _ => return None,
            }
        }
        None
    }

    /// Whether an instruction reads nothing that would be a leftover. If it does, something was not
    /// understood.
    pub(super) fn explains(&self, line: &str) -> bool {
        let code = without_comment(line).trim();
        let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        let read = match operands.rsplit_once(',') {
            // Written to, and nothing else.
            Some((read, to)) if name.starts_with("mov") && !to.contains(['(', ')']) => read,
            _ => operands,
        };
        registers(read)
            .all(|register| self.has(&register) || PRESERVED.contains(&register.as_str()))
    }

    /// Whether a register has been named.
    pub(super) fn has(&self, register: &str) -> bool {
        self.named.contains(register)
    }

    /// Whether the flags are those that the callback left.
    pub(super) fn leaves_flags(&self) -> bool {
        !self.flags
    }
}

/// The vector registers that may hold something at line `number`. A function that was called back
/// when it was entered has nothing in one that it never names, except for what another function may
/// have returned.
pub(super) fn vectors(lines: &[&str], number: usize) -> Vec<u32> {
    let named = named_around(lines, number);
    let unused = |n: u32| {
        named
            .as_ref()
            .is_some_and(|named| !named.contains(&format!("xmm{n}")))
    };
    (0..16).filter(|&n| n < RETURNED || !unused(n)).collect()
}

/// Whether the function around line `number` has nothing in vector registers, except for what another
/// function may have returned.
pub(super) fn uses_few_vectors(lines: &[&str], number: usize) -> bool {
    vectors(lines, number).len() == RETURNED as usize
}

/// How many vector registers, from the first on, a call may leave a result in.
const RETURNED: u32 = 2;

/// All registers that the function around line `number` names, but for callbacks that were put in
/// before. `None` if it may have got something in registers that it does not name.
fn named_around(lines: &[&str], number: usize) -> Option<HashSet<String>> {
    let begins = |line: &&str| line.trim().starts_with(".cfi_startproc");
    let ends = |line: &&str| line.trim() == ".cfi_endproc";
    let before = lines[..number].iter().rev().position(begins)?;
    let function = &lines[number - before..];
    let function = &function[..function.iter().position(ends)?];
    let (mut named, mut called, mut own) = (HashSet::new(), false, false);
    for line in function {
        let code = without_comment(line).trim();
        own |= code.starts_with(frames::BEGIN);
        own &= !code.starts_with(frames::END);
        if own {
            continue;
        }
        let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        if !called && (name.starts_with("call") || name.starts_with('j') || name.starts_with("ret"))
        {
            called = matches!(name, "call" | "callq")
                && operands.trim().starts_with("__tsan_func_entry");
            if !called {
                return None;
            }
        }
        // A part of it that lies elsewhere may name more.
        if operands.contains(".cold") {
            return None;
        }
        named.extend(registers(operands));
    }
    called.then_some(named)
}

/// Whether this is a jump that may as well not be taken: what comes next is reached from here only.
fn is_branch(name: &str) -> bool {
    name.starts_with('j') && !name.starts_with("jmp")
}

/// Whether this is a label of gcc's that no code jumps to.
pub(super) fn is_for_debuggers(name: &str) -> bool {
    let number = ["LVL", "LBB", "LBE", "LBI"].iter().find_map(|kind| {
        let label = name.strip_prefix('.')?.strip_suffix(':')?;
        label.strip_prefix(kind)
    });
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The registers in `operands`, by their full names.
fn registers(operands: &str) -> impl Iterator<Item = String> + '_ {
    operands.split('%').skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric());
        full(&rest[..end.unwrap_or(rest.len())])
    })
}

/// The register that one with this name is a part of.
fn full(name: &str) -> String {
    let letters = |tail: &str| match tail {
        "ax" | "al" | "ah" => "rax".to_owned(),
        "bx" | "bl" | "bh" => "rbx".to_owned(),
        "cx" | "cl" | "ch" => "rcx".to_owned(),
        "dx" | "dl" | "dh" => "rdx".to_owned(),
        "si" | "sil" => "rsi".to_owned(),
        "di" | "dil" => "rdi".to_owned(),
        other => other.to_owned(),
    };
    if let Some(number) = name.strip_prefix("ymm").or(name.strip_prefix("zmm")) {
        return format!("xmm{number}");
    }
    match name.strip_prefix('r') {
        Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("r{}", number.trim_end_matches(['d', 'w', 'b']))
        }
        Some(tail) => letters(tail),
        None => letters(name.strip_prefix('e').unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &str) -> Option<Vec<String>> {
        let lines: Vec<&str> = text.lines().collect();
        let mut named: Vec<String> = Fresh::before(&lines)?.named.into_iter().collect();
        named.sort_unstable();
        Some(named)
    }

    #[test]
    fn only_what_is_named_since_a_callback_is_fresh() {
        let text = "f:\n\tmovl\t$1, %ecx\n\tcall\t__tsan_read4@PLT\n\t.loc 1 2 3\n\tmovl\t(%rsi), %eax\n\tmovb %r9b, %dil # note\n\tmovaps %ymm3, (%rbx)\n";
        let expected = ["r9", "rax", "rbx", "rdi", "rsi", "xmm3"];
        assert_eq!(
            named(text).as_deref(),
            Some(&expected.map(str::to_owned)[..])
        );
    }

    #[test]
    fn what_is_not_clear_is_kept() {
        let after = |code: &str| named(&format!("\tcall\t__tsan_write8\n{code}\tmovl $1, %eax\n"));
        for code in [
            "",
            ".LVL17:\n.LBE3:\n",
            "\tcmpl %eax, %ecx\n\tjge\t.LBB0_3\n# %bb.2:\n",
        ] {
            assert!(after(code).is_some(), "{code}");
        }
        for code in [
            "1:\n",
            ".L4:\n",
            ".LBB0_2:\n",
            "\tcltd\n",
            "\trep stosq\n",
            "\tjmp .L2\n",
            "#APP\n",
            "#NO_APP\n",
            "\tcall\tg\n",
            "\tcall\t*%rax\n",
            "\tcall\t__tsan_atomic32_load\n",
            "\t.cfi_startproc\n",
            "\tpopq %rbx\n",
        ] {
            assert_eq!(after(code), None, "{code}");
        }
    }

    #[test]
    fn an_instruction_that_reads_leftovers_shows_that_something_was_not_understood() {
        let lines = ["\tcall\t__tsan_read4", "\tmovq\t-8(%rbp), %rax"];
        let fresh = Fresh::before(&lines).expect("straight code");
        for line in [
            "movl\t(%rax), %ecx",
            "movq\t%rax, (%rbx,%r12,8)",
            "incl x(%rip)",
            "addl %eax, 8(%rsp)",
        ] {
            assert!(fresh.explains(line), "{line}");
        }
        for line in [
            "movl\t(%rax,%rdx), %ecx",
            "movq %rcx, (%rax)",
            "addl (%rax), %ecx",
            "incl (%r8)",
            "movaps %xmm1, (%rax)",
        ] {
            assert!(!fresh.explains(line), "{line}");
        }
    }

    #[test]
    fn vectors_that_a_function_never_names_hold_nothing() {
        let held = |code: &str| {
            let text = format!("f:\n\t.cfi_startproc\n{code}\t.cfi_endproc\n");
            let lines: Vec<&str> = text.lines().collect();
            vectors(&lines, lines.len() - 1)
        };
        let entered = "\tcall\t__tsan_func_entry@PLT\n";
        assert_eq!(held(entered), [0, 1]);
        assert_eq!(held("\tcallq\t__tsan_func_entry@PLT\n"), [0, 1]);
        assert_eq!(
            held(&format!("{entered}.L2:\n\tmovss\t%xmm3, (%rax)\n")),
            [0, 1, 3]
        );
        let own = "\t.Lselvedge_own_0_1:\n\tmovaps %xmm4, (%rsp)\n.Lselvedge_owned_0_1:\n";
        assert_eq!(held(&format!("{entered}{own}")), [0, 1]);
        let cold = format!("{entered}\tje\tf.cold\n");
        for code in ["", "\tcall\tg\n", "\tjmp\t.L2\n", cold.as_str()] {
            assert_eq!(held(code).len(), 16, "{code}");
        }
    }

    #[test]
    fn flags_are_kept_once_something_sets_them() {
        let leaves = |code: &str| {
            let text = format!("\tcall\t__tsan_write8\n\t{code}\n");
            let lines: Vec<&str> = text.lines().collect();
            Fresh::before(&lines).expect("straight code").leaves_flags()
        };
        assert!(leaves("movq %rax, %rbx") && leaves("leaq 8(%rax), %rbx"));
        assert!(!leaves("cmpl $1, %eax") && !leaves("xorl %eax, %eax"));
    }
}
