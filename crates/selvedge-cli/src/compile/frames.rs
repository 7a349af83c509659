//! Clears stack frames when they are allocated.
//!
//! Uninitialised variables and padding hold old contents of the stack, leftovers of the runtime
//! included, and those differ between an execution and its repetition. A structure assignment may
//! copy such bytes, so a correct program could seem to depend on more than its schedule. A call behind the allocation of each frame clears it.

use selvedge_runtime::support::CLEAR_FRAME;

use super::announce::table;
use super::assembly::{line_to, without_comment};
use super::checks::SECTION;

/// The labels around a piece of code that was put in begin with these.
pub(super) const BEGIN: &str = ".Lselvedge_own_";
pub(super) const END: &str = ".Lselvedge_owned_";

/// Clears every frame that the functions in `text` allocate, outside of inline assembly.
pub(super) fn clear(text: &str) -> String {
    let mut cleared = String::with_capacity(text.len() + text.len() / 8);
    let mut count = 0;
    let mut inline = false;
    let mut prologue = false;
    for line in text.lines() {
        let trimmed = line.trim();
        inline = (inline || trimmed == "#APP") && trimmed != "#NO_APP";
        let code = without_comment(line).trim();
        let (name, operands) = code.split_once(char::is_whitespace).unwrap_or((code, ""));
        let operands = operands.trim();
        prologue = match name {
            ".cfi_startproc" => true,
            "pushq" => prologue,
            "movq" if operands == "%rsp, %rbp" => prologue,
            _ => prologue && (code.is_empty() || code.starts_with('.')),
        };
        // clang makes room for eight bytes this way; the register holds a leftover.
        if prologue && (name, operands) == ("pushq", "%rax") {
            line_to(&mut cleared, "\tpushq\t$0");
            continue;
        }
        line_to(&mut cleared, line);
        if let Some(size) = allocated(name, operands).filter(|_| !inline) {
            line_to(&mut cleared, &format!("{BEGIN}frame_{count}:"));
            line_to(
                &mut cleared,
                &format!("\tpushq {size}\n\tcall {CLEAR_FRAME}@PLT"),
            );
            line_to(&mut cleared, &format!("{END}frame_{count}:"));
            count += 1;
        }
    }
    table(&mut cleared, SECTION, count, |n| {
        format!("{BEGIN}frame_{n}, {END}frame_{n}")
    });
    cleared
}

/// How many bytes an instruction takes from the stack, as the assembler writes it. It sets the
/// flags, so no later code needs them.
fn allocated<'a>(name: &str, operands: &'a str) -> Option<std::borrow::Cow<'a, str>> {
    let (size, to) = operands.split_once(',')?;
    if to.trim() != "%rsp" {
        return None;
    }
    match (name, size.strip_prefix('$')) {
        ("subq", Some(bytes)) => (bytes.parse::<i64>().ok()? > 0).then_some(size.into()),
        ("subq", None) => size.starts_with('%').then_some(size.into()),
        ("addq", Some(bytes)) => {
            let bytes = bytes.parse::<i64>().ok()?;
            (bytes < 0).then(|| format!("${}", -bytes).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_allocates_is_cleared() {
        let text = "f:\n\t.cfi_startproc\n\tpushq\t%rbp\n\tmovq\t%rsp, %rbp\n\tpushq\t%rax\n\
                    \tsubq\t$24, %rsp\n\taddq\t$-128, %rsp\n\tsubq\t%rcx, %rsp\n\tpushq\t%rax\n\
                    \taddq\t$8, %rsp\n#APP\n\tsubq $8, %rsp\n#NO_APP\n";
        let cleared = clear(text);
        let calls: Vec<&str> = cleared
            .split(BEGIN)
            .filter_map(|piece| piece.split_once("\tpushq ")?.1.split_once("\n\tcall "))
            .map(|(size, _)| size)
            .collect();
        assert_eq!(calls, ["$24", "$128", "%rcx"]);
        assert_eq!(cleared.matches("pushq\t$0").count(), 1);
        assert_eq!(cleared.matches("pushq\t%rax").count(), 1);
        assert_eq!(clear("f:\n\tret\n"), "f:\n\tret\n");
    }
}
