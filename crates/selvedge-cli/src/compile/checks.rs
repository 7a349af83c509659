//! Checks behind stores that others can see.
//!
//! A callback announces a store before it is made, so its value is known only afterwards. A check
//! behind the store's instruction asks whether the runtime waits for a store of this thread and, if
//! so, tells it which bytes were written. Nothing has to be guessed, whatever the compiler puts
//! between an announcement and its store.
//!
//! Mostly no store is in flight: then the check is a comparison and a jump that is not taken. The rest of it
//! lies at the end of the section.

use selvedge_runtime::support::{
    STORED, STORED_EXTENDED, STORED_SHORT, STORES_ADDRESS, STORES_SCRATCH,
};

use super::announce::{self, table};
use super::assembly::line_to;
use crate::scan::Store;

/// The section that tells where checks were put in: two addresses for each piece.
pub(crate) const SECTION: &str = ".selvedge.checks";

/// A store to tell of.
pub(super) struct Check<'a> {
    pub(super) store: &'a Store,
    /// Whether registers are in use that calls need not preserve and the short routine does not
    /// either.
    pub(super) extended: bool,
}

/// The checks of one file.
pub(super) struct Checks {
    round: usize,
    count: usize,
    /// The checks that have a piece before their instruction.
    alone: Vec<usize>,
}

impl Checks {
    /// None yet, in this round of putting things in.
    pub(super) fn new(round: usize) -> Checks {
        Checks {
            round,
            count: 0,
            alone: Vec::new(),
        }
    }

    fn label(&self, what: &str) -> String {
        format!(".Lselvedge_{what}_{}_{}", self.round, self.count)
    }

    /// Writes what has to come before the instruction in `line`.
    pub(super) fn before(to: &mut String, line: &str) {
        if moves(line) {
            line_to(to, &format!("\tmovq %rdi, {STORES_SCRATCH:#x}"));
        }
    }

    /// The same as a piece of its own.
    pub(super) fn alone(&mut self, to: &mut String, line: &str) {
        if moves(line) {
            let (start, end) = (self.label("before"), self.label("begun"));
            line_to(to, &format!("{start}:"));
            Checks::before(to, line);
            line_to(to, &format!("{end}:"));
            self.alone.push(self.count);
        }
    }

    /// Writes the check of the instruction in `line`, which stands before it. `None` if its operand
    /// cannot be written down.
    /// `few` says that the function uses no vector registers but those that calls return values in.
    pub(super) fn after(
        &mut self,
        to: &mut String,
        check: &Check<'_>,
        line: &str,
        few: bool,
    ) -> Option<()> {
        /// Room for the data that may lie below the stack pointer, and for two registers.
        const LOWERED: i64 = 128 + 16;
        const SAVED: usize = STORES_SCRATCH + 8;
        let operand = &check.store.access.operand;
        let slow = self.label("stored");
        let back = self.label("checked");
        let mut code = vec![format!("{}:", self.label("check"))];
        if check.store.flags {
            // These leave the flags alone.
            let none = self.label("none");
            code.push(format!("\tmovq %rcx, {SAVED:#x}"));
            code.push(format!("\tmovq {STORES_ADDRESS:#x}, %rcx"));
            code.push(format!("\tjrcxz {none}\n\tjmp {slow}"));
            code.push(format!("{none}:\n\tmovq {SAVED:#x}, %rcx"));
        } else {
            code.push(format!("\tcmpl $0, {STORES_ADDRESS:#x}\n\tjne {slow}"));
        }
        code.push(format!("{back}:\n\t.subsection 1\n{slow}:"));
        if check.store.flags {
            code.push(format!("\tmovq {SAVED:#x}, %rcx"));
        }
        code.push("\tleaq -128(%rsp), %rsp\n\tpushq %rdi\n\tpushq %rsi".to_owned());
        if moves(line) {
            // From where the register pointed before to where it points now, without flags.
            code.push(format!(
                "\tmovq %rdi, %rsi\n\tmovq {STORES_SCRATCH:#x}, %rdi"
            ));
            code.push("\tnotq %rdi\n\tleaq 1(%rsi,%rdi), %rsi".to_owned());
            code.push(format!("\tmovq {STORES_SCRATCH:#x}, %rdi"));
        } else {
            let address = announce::address(operand, line, LOWERED)?;
            code.push(format!(
                "\tleaq {address}, %rdi\n\tmovl ${}, %esi",
                operand.bytes
            ));
        }
        let routine = match (check.extended, few) {
            (true, _) => STORED_EXTENDED,
            (false, true) => STORED_SHORT,
            (false, false) => STORED,
        };
        code.push(format!("\tcall {routine}@PLT\n\tpopq %rsi\n\tpopq %rdi"));
        code.push(format!("\tleaq 128(%rsp), %rsp\n\tjmp {back}"));
        code.push(format!("{}:\n\t.subsection 0", self.label("told")));
        code.iter().for_each(|line| line_to(to, line));
        self.count += 1;
        Some(())
    }

    /// Writes where the checks are.
    pub(super) fn finish(self, to: &mut String) {
        let Checks {
            round,
            count,
            alone,
        } = self;
        table(to, SECTION, alone.len(), |n| {
            let n = alone[n];
            format!(".Lselvedge_before_{round}_{n}, .Lselvedge_begun_{round}_{n}")
        });
        for (from, until) in [("check", "checked"), ("stored", "told")] {
            table(to, SECTION, count, |n| {
                format!(".Lselvedge_{from}_{round}_{n}, .Lselvedge_{until}_{round}_{n}")
            });
        }
    }
}

/// Whether the instruction in `line` changes the register that it addresses memory with.
fn moves(line: &str) -> bool {
    const STRINGS: [&str; 8] = [
        "stosb", "stosw", "stosl", "stosq", "movsb", "movsw", "movsl", "movsq",
    ];
    let mut words = line.split([' ', '\t', ';']).filter(|word| !word.is_empty());
    let name = words.find(|word| !matches!(*word, "rep" | "repe" | "repz"));
    name.is_some_and(|name| STRINGS.contains(&name))
}
