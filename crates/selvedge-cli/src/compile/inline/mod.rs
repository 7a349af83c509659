//! Inline assembly with a known meaning.
//!
//! Libraries write fences, atomic operations and relaxed accesses as inline assembly, which no
//! compiler announces. An instruction in such a block that accesses memory is split in two: a
//! callback performs the access, as an atomic operation of the memory model, and puts the value
//! that it read into a scratch word; then the instruction itself runs on that word, so that
//! registers and flags become what they would be. A store is made the other way round.
//!
//! `lock`ed instructions and `xchg` are `seq_cst` updates, other accesses are relaxed, `mfence` and
//! `lock` with a zero on the stack are `seq_cst` fences. What is not understood stays as it is, for
//! the scan to refuse.

mod meaning;
mod writer;

use iced_x86::{Instruction, InstructionInfoFactory};

use super::announce::table;
use super::assembly::{line_to, without_comment};
use super::fresh::{self, Fresh};
use meaning::{Meaning, meaning};
use writer::Writer;

/// The section that tells where callbacks were put in: two addresses for each.
pub(crate) const SECTION: &str = ".selvedge.inline";

/// Rewrites the blocks of inline assembly in `text`, which are marked, given the instructions of each
/// that is in a function. `None` if there is nothing to do.
pub(super) fn rewrite(text: &str, blocks: &[Option<Vec<Instruction>>]) -> Option<String> {
    if text.contains(".intel_syntax") || text.contains("%ymm") || text.contains("%zmm") {
        return None;
    }
    let mut written = String::with_capacity(text.len() * 2);
    let lines: Vec<&str> = text.lines().collect();
    let mut count = 0;
    let mut number = 0;
    while number < lines.len() {
        let line = lines[number];
        line_to(&mut written, line);
        number += 1;
        let block = line.strip_prefix(".Lselvedge_begin_");
        let Some(block) = block.and_then(|rest| rest.strip_suffix(':')?.parse::<usize>().ok())
        else {
            continue;
        };
        let end = format!(".Lselvedge_end_{block}:");
        let length = lines[number..].iter().position(|line| *line == end)?;
        let inside = &lines[number..number + length];
        if let Some(Some(code)) = blocks.get(block)
            && let Some(replaced) = replace(&lines, (number, inside), code, count)
        {
            written += &replaced.text;
            count = replaced.count;
            number += length;
        }
    }
    if count == 0 {
        return None;
    }
    table(&mut written, SECTION, count, |n| {
        format!(".Lselvedge_inline_{n}, .Lselvedge_inlined_{n}")
    });
    Some(written)
}

struct Replaced {
    text: String,
    /// How many callbacks there are by now.
    count: usize,
}

/// Rewrites one block. `None` if it need not or cannot be.
fn replace(
    all: &[&str],
    (number, inside): (usize, &[&str]),
    code: &[Instruction],
    count: usize,
) -> Option<Replaced> {
    let statements = statements(inside)?;
    let instructions = statements.iter().filter(|s| s.is_instruction()).count();
    if instructions != code.len() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let meanings: Option<Vec<Meaning>> = code.iter().map(|i| meaning(&mut factory, i)).collect();
    let meanings = meanings?;
    if meanings
        .iter()
        .all(|meaning| matches!(meaning, Meaning::Itself))
    {
        return None;
    }
    // The first of the marks is before the block.
    let before = &all[..number];
    let fresh = Fresh::before(before).filter(|fresh| {
        instructions == 1
            && statements
                .iter()
                .all(|statement| fresh.explains(&statement.code))
    });
    let mut writer = Writer {
        text: String::new(),
        count,
        vectors: fresh::vectors(all, number),
        fresh,
    };
    let mut meanings = meanings.iter();
    for statement in &statements {
        for label in &statement.labels {
            line_to(&mut writer.text, &format!("{label}:"));
        }
        match statement.is_instruction() {
            true => writer.statement(meanings.next()?, &statement.code)?,
            false => line_to(&mut writer.text, &format!("\t{}", statement.code)),
        }
    }
    Some(Replaced {
        text: writer.text,
        count: writer.count,
    })
}

/// Labels, and an instruction or a line number after them.
struct Statement {
    labels: Vec<String>,
    code: String,
}

impl Statement {
    fn is_instruction(&self) -> bool {
        !self.code.is_empty() && !self.code.starts_with('.')
    }
}

/// The statements of a block; `None` if there is anything but labels and instructions.
fn statements(lines: &[&str]) -> Option<Vec<Statement>> {
    const PREFIXES: [&str; 4] = ["lock", "rep", "repz", "repe"];
    let mut statements: Vec<Statement> = Vec::new();
    let mut prefix = String::new();
    for line in lines {
        let line = without_comment(line);
        if line.contains("/*") {
            return None;
        }
        for part in line.split(';') {
            let mut rest = part.trim();
            let mut labels = Vec::new();
            while let Some((name, after)) = rest.split_once(':')
                && name
                    .chars()
                    .all(|c| c.is_alphanumeric() || "._$@".contains(c))
            {
                labels.push(name.to_owned());
                rest = after.trim();
            }
            let directive = rest.starts_with('.') && !rest.starts_with(".loc");
            if directive || rest.contains('=') {
                return None;
            }
            if !prefix.is_empty() && !labels.is_empty() {
                return None;
            }
            if PREFIXES.contains(&rest) {
                prefix = format!("{rest} ");
                rest = "";
            }
            if rest.is_empty() && labels.is_empty() {
                continue;
            }
            let code = match rest.is_empty() {
                true => String::new(),
                false => std::mem::take(&mut prefix) + rest,
            };
            statements.push(Statement { labels, code });
        }
    }
    prefix.is_empty().then_some(statements)
}
