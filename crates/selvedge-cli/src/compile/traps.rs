//! Puts traps before code that cannot be checked.
//!
//! An inspection finds inline assembly and functions that Selvedge cannot follow. Most programs
//! contain some and never run them. A trap takes the place of such a block, or stands at the
//! beginning of such a function: an execution that reaches it ends with the finding's words.

use std::collections::{HashMap, HashSet};

use selvedge_runtime::support::UNSUPPORTED;

use super::announce::table;
use super::assembly::{line_to, without_comment};
use super::fresh::is_for_debuggers;
use crate::scan::{Finding, Trap};

/// The section that tells where traps are: two addresses for each.
pub(crate) const SECTION: &str = ".selvedge.traps";

/// The prefix of the label before a block of inline assembly; its number follows.
const BLOCK: &str = ".Lselvedge_begin_";

/// The prefix of the labels around a callback for inline assembly.
const INLINE: &str = ".Lselvedge_inline";

/// The line that gcc writes after a statement of inline assembly, and the beginning of the line before one. One block
/// may have several statements.
const GCC_AFTER: &str = "# 0 \"\" 2";
const GCC_LINE: &str = "# ";

/// Writes the traps for `findings` into `text`. `None` if one of them has no place there.
pub(super) fn write(text: &str, findings: &[Finding], round: usize) -> Option<String> {
    if text.contains(".intel_syntax") {
        return None;
    }
    let mut labels: HashMap<String, usize> = HashMap::new();
    for (n, finding) in findings.iter().enumerate() {
        for label in labels_of(&finding.trap)? {
            labels.entry(label).or_insert(n);
        }
    }
    let mut written = String::with_capacity(text.len() + 256 * findings.len());
    let mut traps: Vec<usize> = Vec::new();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        line_to(&mut written, line);
        let label = without_comment(line).trim().strip_suffix(':');
        let label = label.map(|label| label.trim_matches('"'));
        let Some((label, &n)) = label.and_then(|label| Some((label, labels.get(label)?))) else {
            continue;
        };
        trap(&mut written, round, traps.len());
        traps.push(n);
        seen.insert(label);
        if let Some(block) = label.strip_prefix(BLOCK) {
            // Nothing of the user's is left, not even a label that others could jump to.
            // Its callbacks, if it has any, are listed elsewhere.
            let end = format!(".Lselvedge_end_{block}:");
            let mut compilers = false;
            loop {
                let line = lines.next()?;
                compilers = line == GCC_AFTER || compilers && !line.starts_with(GCC_LINE);
                let kept = line.starts_with(INLINE) || compilers && is_debugging(line);
                if kept || line == end {
                    line_to(&mut written, line);
                }
                if line == end {
                    break;
                }
            }
        }
    }
    for finding in findings {
        let mut labels = labels_of(&finding.trap)?.into_iter();
        if finding.trap != Trap::Callee && !labels.any(|label| seen.contains(&*label)) {
            return None;
        }
    }
    if !traps.is_empty() {
        line_to(&mut written, "\t.section .rodata.selvedge,\"a\",@progbits");
    }
    for (n, &finding) in traps.iter().enumerate() {
        let words = quoted(&findings[finding]);
        line_to(
            &mut written,
            &format!(".Lselvedge_words_{round}_{n}:\n\t.asciz {words}"),
        );
    }
    table(&mut written, SECTION, traps.len(), |n| {
        format!(".Lselvedge_trap_{round}_{n}, .Lselvedge_trapped_{round}_{n}")
    });
    Some(written)
}

/// The labels that a trap comes after; `None` if there is no place for it.
fn labels_of(trap: &Trap) -> Option<Vec<String>> {
    match trap {
        Trap::Nothing => None,
        Trap::Callee => Some(Vec::new()),
        Trap::Block(block) => Some(vec![format!("{BLOCK}{block}")]),
        Trap::Entry(names) => Some(names.clone()),
    }
}

/// Whether a line between two statements is for debuggers. Debug information refers to such lines.
fn is_debugging(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(".loc ") || line.ends_with(':') && is_for_debuggers(line)
}

fn trap(to: &mut String, round: usize, n: usize) {
    line_to(to, &format!(".Lselvedge_trap_{round}_{n}:"));
    line_to(
        to,
        &format!("\tleaq .Lselvedge_words_{round}_{n}(%rip), %rdi"),
    );
    line_to(to, &format!("\tcall {UNSUPPORTED}@PLT"));
    line_to(to, &format!(".Lselvedge_trapped_{round}_{n}:"));
}

/// The message when the trap is reached, as a string of the assembler's.
fn quoted(finding: &Finding) -> String {
    let mut words = finding.line();
    if !finding.help.is_empty() {
        words += &format!("; {}", finding.help);
    }
    let mut quoted = String::from("\"");
    for byte in words.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte as char]),
            b' '..=b'~' => quoted.push(byte as char),
            other => quoted += &format!("\\{other:03o}"),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(trap: Trap) -> Finding {
        Finding {
            place: "a.c:1: `f`".to_owned(),
            what: "has \"x\"".to_owned(),
            help: String::new(),
            trap,
        }
    }

    #[test]
    fn a_block_is_replaced_and_a_function_begins_with_its_trap() {
        let text = "f:\n\tnop\n.Lselvedge_begin_0:\n#APP\n1:\tlock\n#NO_APP\n\
                    .Lselvedge_end_0:\n\tret\n\"g\":\n\tnop\n";
        let findings = [
            finding(Trap::Block(0)),
            finding(Trap::Entry(vec!["g2".to_owned(), "g".to_owned()])),
        ];
        let written = write(text, &findings, 0).unwrap();
        let call = |n| {
            format!(
                ".Lselvedge_trap_0_{n}:\n\tleaq .Lselvedge_words_0_{n}(%rip), %rdi\n\
                 \tcall {UNSUPPORTED}@PLT\n.Lselvedge_trapped_0_{n}:\n"
            )
        };
        let expected = format!(
            "f:\n\tnop\n.Lselvedge_begin_0:\n{}.Lselvedge_end_0:\n\tret\n\"g\":\n{}\tnop\n",
            call(0),
            call(1)
        );
        assert!(written.starts_with(&expected), "{written}");
        assert!(written.contains(".asciz \"a.c:1: `f` has \\\"x\\\"\""));
    }

    #[test]
    fn what_debug_information_refers_to_stays_in_a_block() {
        let text = ".Lselvedge_begin_0:\n#APP\n# 1 \"a.c\" 1\n.LVL1:\n\tlock\n# 0 \"\" 2\n.LVL2:\n\
                    \t.loc 1 2 3 view .LVU4\n2:\n# 2 \"a.c\" 1\n.LVL3:\n# 0 \"\" 2\n#NO_APP\n\
                    .Lselvedge_end_0:\n";
        let written = write(text, &[finding(Trap::Block(0))], 0).unwrap();
        let kept = ".Lselvedge_trapped_0_0:\n.LVL2:\n\t.loc 1 2 3 view .LVU4\n.Lselvedge_end_0:\n";
        assert!(written.contains(kept), "{written}");
    }

    #[test]
    fn what_has_no_place_is_not_written() {
        assert_eq!(write("f:\n", &[finding(Trap::Nothing)], 0), None);
        let elsewhere = finding(Trap::Entry(vec!["g".to_owned()]));
        assert_eq!(write("f:\n", &[elsewhere], 0), None);
    }
}
