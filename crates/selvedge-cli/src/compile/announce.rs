//! Puts callbacks where the compiler forgot them.
//!
//! The scan finds accesses that no callback announces. They are announced in the assembly: in front
//! of the instruction, a call with the address, around which everything is saved that the compiler
//! may keep in registers there. The instruction's line is found by counting, and where that fails by
//! assembling the functions in question once with a label on every line.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use iced_x86::Register;
use object::{File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget};

use super::assembly::{line_to, without_comment};
use super::checks::{Check, Checks};
use super::frames;
use super::fresh::{self, Fresh};
use crate::scan::{Omission, Operand, Unannounced};

/// The section that tells where callbacks were put in: two addresses for each.
pub(crate) const SECTION: &str = ".selvedge.own";

/// The section that tells where lines came to lie.
const LINES: &str = ".selvedge.at";

/// The registers that are saved around a callback, besides flags and vector registers.
pub(super) const SAVED: [&str; 10] = [
    "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "rbx",
];
/// The size of the red zone: what leaf functions may keep below the stack pointer.
pub(super) const RED_ZONE: i64 = 128;
/// How much the stack pointer is lower, besides, once they are saved.
pub(super) const LOWERED: i64 = 8 + 8 * SAVED.len() as i64;

/// The code to put in, by line.
pub(super) type Places<'a> = BTreeMap<usize, Place<'a>>;

/// The code to put in around one instruction.
#[derive(Default)]
pub(super) struct Place<'a> {
    /// The accesses to announce before it, and whether its function uses the floating-point stack.
    accesses: Vec<(&'a Unannounced, bool)>,
    /// The store to tell of after it.
    store: Option<Check<'a>>,
}

/// Collects what to put in, given the line of each instruction by its function, address and number.
fn collect<'a>(
    omissions: &'a [Omission],
    mut line_of: impl FnMut(usize, &Unannounced) -> Option<usize>,
) -> Option<Places<'a>> {
    let mut places = Places::new();
    for (n, omission) in omissions.iter().enumerate() {
        for access in &omission.accesses {
            let place = places.entry(line_of(n, access)?).or_default();
            place.accesses.push((access, omission.float));
        }
        for store in &omission.stores {
            let place = places.entry(line_of(n, &store.access)?).or_default();
            place.store = Some(Check {
                store,
                extended: omission.float || omission.wide,
            });
        }
    }
    Some(places)
}

/// Lines of assembly that get a label each.
#[derive(Debug)]
pub(super) struct Labelled {
    /// The assembly with the labels.
    pub(super) text: String,
    /// The numbers of the lines, label by label.
    lines: Vec<usize>,
}

/// Calls `found` for every line: its number, the line, and which of `omissions` it is an
/// instruction of.
fn each_line<'a>(
    text: &'a str,
    omissions: &[Omission],
    mut found: impl FnMut(usize, &'a str, Option<usize>),
) {
    let mut wanted: HashMap<&str, usize> = HashMap::new();
    for (n, omission) in omissions.iter().enumerate() {
        wanted.extend(omission.names.iter().map(|name| (name.as_str(), n)));
    }
    // Code that was put in; no access is looked for in it.
    let begins = |name: &str| {
        [".Lselvedge_inline_", ".Lselvedge_trap_", frames::BEGIN]
            .iter()
            .any(|label| name.starts_with(label))
    };
    let ends = |name: &str| {
        [".Lselvedge_inlined_", ".Lselvedge_trapped_", frames::END]
            .iter()
            .any(|label| name.starts_with(label))
    };
    let (mut inside, mut own) = (None, false);
    for (number, line) in text.lines().enumerate() {
        let code = without_comment(line).trim();
        if let Some(name) = code.strip_suffix(':') {
            own = (own || begins(name)) && !ends(name);
            inside = wanted.get(name.trim_matches('"')).copied().or(inside);
            found(number, line, None);
        } else if code == ".cfi_endproc" {
            inside = None;
            found(number, line, None);
        } else {
            let instruction = !code.is_empty() && !code.starts_with('.');
            found(number, line, inside.filter(|_| instruction && !own));
        }
    }
}

/// The lines of the accesses in `omissions`, found by counting instructions. That is quick, but
/// wrong where a line is not an instruction: callers have to check the result.
pub(super) fn count<'a>(text: &str, omissions: &'a [Omission]) -> Option<Places<'a>> {
    const PREFIXES: [&str; 3] = ["rex64", "data16", "rep"];
    let mut lines = vec![Vec::new(); omissions.len()];
    each_line(text, omissions, |number, line, function| {
        if let Some(function) = function
            && !PREFIXES.contains(&line.trim())
        {
            lines[function].push(number);
        }
    });
    collect(omissions, |function, access| {
        lines[function].get(access.nth).copied()
    })
}

/// Puts a label on every instruction of the functions in `omissions`.
pub(super) fn label(text: &str, omissions: &[Omission]) -> Labelled {
    let mut labelled = String::with_capacity(text.len() + text.len() / 2);
    let mut lines = Vec::new();
    each_line(text, omissions, |number, line, function| {
        if function.is_some() {
            line_to(&mut labelled, &format!(".Lselvedge_at_{}:", lines.len()));
            lines.push(number);
        }
        line_to(&mut labelled, line);
    });
    line_to(
        &mut labelled,
        &format!("\t.section {LINES},\"e\",@progbits"),
    );
    for n in 0..lines.len() {
        line_to(&mut labelled, &format!("\t.quad .Lselvedge_at_{n}"));
    }
    let text = labelled;
    Labelled { text, lines }
}

impl Labelled {
    /// The lines of the accesses in `omissions`, given what the labelled text was assembled to.
    /// `None` if one cannot be found.
    pub(super) fn find<'a>(
        &self,
        file: &File<'_>,
        omissions: &'a [Omission],
    ) -> Option<Places<'a>> {
        let mut places = HashMap::new();
        for (offset, relocation) in file.section_by_name(LINES)?.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            let symbol = file.symbol_by_index(index).ok()?;
            let address = symbol.address().wrapping_add_signed(relocation.addend());
            let line = *self.lines.get(offset as usize / 8)?;
            places.insert((symbol.section_index()?, address), line);
        }
        let mut starts = HashMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            if let (Ok(name), Some(section)) = (symbol.name(), symbol.section_index()) {
                starts.insert(name.to_owned(), (section, symbol.address()));
            }
        }
        collect(omissions, |function, access| {
            let omission = &omissions[function];
            let &(section, start) = starts.get(omission.names.first()?)?;
            let address = start + (access.ip - omission.start);
            places.get(&(section, address)).copied()
        })
    }
}

/// Writes the callbacks into `text`, which may have some from earlier rounds. `None` if an operand
/// cannot be written down.
pub(super) fn write(text: &str, places: &Places<'_>, round: usize) -> Option<String> {
    if text.contains(".intel_syntax") {
        return None;
    }
    let mut written = String::with_capacity(text.len() * 2);
    let mut count = 0;
    let lines: Vec<&str> = text.lines().collect();
    let mut checks = Checks::new(round);
    // Whether the present function uses few vector registers, once that was looked at.
    let mut few = None;
    for (number, line) in lines.iter().enumerate() {
        if line.trim().starts_with(".cfi_startproc") {
            few = None;
        }
        let place = places.get(&number);
        let store = place.and_then(|place| place.store.as_ref());
        let accesses = place.map_or(&[][..], |place| &place.accesses);
        for (n, &(access, float)) in accesses.iter().enumerate() {
            line_to(&mut written, &format!(".Lselvedge_own_{round}_{count}:"));
            let fresh = Fresh::before(&lines[..number]).filter(|fresh| fresh.explains(line));
            let saved = match (float, fresh) {
                (true, _) => Saved::Float,
                (false, Some(fresh)) => Saved::Fresh(fresh),
                (false, None) => Saved::All(fresh::vectors(&lines, number)),
            };
            callback(&mut written, access, &saved, line)?;
            if store.is_some() && n + 1 == accesses.len() {
                Checks::before(&mut written, line);
            }
            line_to(&mut written, &format!(".Lselvedge_owned_{round}_{count}:"));
            count += 1;
        }
        if store.is_some() && accesses.is_empty() {
            checks.alone(&mut written, line);
        }
        line_to(&mut written, line);
        if let Some(check) = store {
            let few = few.get_or_insert_with(|| fresh::uses_few_vectors(&lines, number));
            checks.after(&mut written, check, line, *few)?;
        }
    }
    table(&mut written, SECTION, count, |n| {
        format!(".Lselvedge_own_{round}_{n}, .Lselvedge_owned_{round}_{n}")
    });
    checks.finish(&mut written);
    Some(written)
}

/// Adds a section that tells where pieces of code are, which no linker keeps.
pub(super) fn table(to: &mut String, section: &str, count: usize, pair: impl Fn(usize) -> String) {
    if count > 0 {
        line_to(to, &format!("\t.section {section},\"e\",@progbits"));
    }
    for n in 0..count {
        line_to(to, &format!("\t.quad {}", pair(n)));
    }
}

/// The registers that are saved around a callback. Leftovers are not saved, because the stack of a
/// thread must not show how it came here.
enum Saved {
    /// The registers that the program has written since the last callback.
    Fresh(Fresh),
    /// Everything, with these vector registers.
    All(Vec<u32>),
    /// Everything, with the floating-point stack.
    Float,
}

impl Saved {
    fn fresh(&self) -> Option<&Fresh> {
        match self {
            Saved::Fresh(fresh) => Some(fresh),
            Saved::All(_) | Saved::Float => None,
        }
    }

    fn vectors(&self) -> Vec<u32> {
        match self {
            Saved::Fresh(fresh) => {
                let named = |n: &u32| fresh.has(&format!("xmm{n}"));
                (0..16).filter(named).collect()
            }
            Saved::All(vectors) => vectors.clone(),
            Saved::Float => Vec::new(),
        }
    }
}

fn callback(to: &mut String, access: &Unannounced, saved: &Saved, line: &str) -> Option<()> {
    let operand = &access.operand;
    let way = if access.write { "write" } else { "read" };
    let scalar = !operand.repeated && matches!(operand.bytes, 1 | 2 | 4 | 8 | 16);
    let mut code = |line: &str| line_to(to, &format!("\t{line}"));
    let fresh = saved.fresh();
    let red_zone = if fresh.is_some() { 0 } else { RED_ZONE };
    // Also where there is nothing to step over: enforcement knows by it that a callback begins.
    code(&format!("leaq -{red_zone}(%rsp), %rsp"));
    match fresh.is_some_and(Fresh::leaves_flags) {
        true => code("pushq $0"),
        false => code("pushfq"),
    }
    for register in SAVED {
        match fresh.is_some_and(|fresh| register != "rbx" && !fresh.has(register)) {
            true => code("pushq $0"),
            false => code(&format!("pushq %{register}")),
        }
    }
    let lowered = red_zone + LOWERED;
    code(&format!("leaq {}, %rdi", address(operand, line, lowered)?));
    if operand.repeated {
        code("movq %rcx, %rsi");
        code(&format!("imulq ${}, %rsi, %rsi", operand.bytes));
    } else if !scalar {
        code(&format!("movl ${}, %esi", operand.bytes));
    }
    code("movq %rsp, %rbx");
    // Aligned, without a gap.
    code("pushq $0");
    code("pushq $0");
    code("addq $8, %rsp");
    code("andq $-16, %rsp");
    let vectors = saved.vectors();
    let vectors = || vectors.iter().enumerate();
    code(&format!("subq ${}, %rsp", 16 * vectors().len()));
    for (place, n) in vectors() {
        code(&format!("movaps %xmm{n}, {}(%rsp)", 16 * place));
    }
    let float = matches!(saved, Saved::Float);
    if float {
        code("subq $512, %rsp");
        code("fxsave64 (%rsp)");
        code("fninit");
    }
    match scalar {
        true => code(&format!("call __tsan_{way}{}@PLT", operand.bytes)),
        false => code(&format!("call __tsan_{way}_range@PLT")),
    }
    if float {
        code("fxrstor64 (%rsp)");
    }
    for (place, n) in vectors() {
        code(&format!("movaps {}(%rsp), %xmm{n}", 16 * place));
    }
    code("movq %rbx, %rsp");
    for register in SAVED.iter().rev() {
        code(&format!("popq %{register}"));
    }
    code("popfq");
    if red_zone > 0 {
        code(&format!("leaq {red_zone}(%rsp), %rsp"));
    }
    Some(())
}

/// The operand's address as the assembler understands it, with the stack pointer lowered.
pub(super) fn address(operand: &Operand, line: &str, lowered: i64) -> Option<String> {
    if operand.relocated {
        return named(line);
    }
    let lowered = match operand.base {
        Register::RSP => lowered,
        _ => 0,
    };
    let mut text = format!("{}(", operand.displacement + lowered);
    let name = |register: Register| {
        let name = format!("{register:?}").to_lowercase();
        register.is_gpr64().then(|| format!("%{name}"))
    };
    if operand.base != Register::None {
        text += &name(operand.base)?;
    }
    if operand.index != Register::None {
        write!(text, ",{},{}", name(operand.index)?, operand.scale).ok()?;
    }
    Some(text + ")")
}

/// The memory operand of an instruction.
fn named(line: &str) -> Option<String> {
    let code = without_comment(line).trim();
    let (_, operands) = code.split_once(char::is_whitespace)?;
    let open = operands.find('(')?;
    let end = open + operands[open..].find(')')?;
    let start = operands[..open].rfind([',', ' ', '\t', '*']);
    let start = start.map_or(0, |at| at + 1);
    let alone = !operands[end..].contains('(') && !operands.contains("%rsp");
    alone.then(|| operands[start..=end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERAND: Operand = Operand {
        base: Register::RAX,
        index: Register::None,
        scale: 1,
        displacement: 8,
        relocated: false,
        bytes: 8,
        repeated: false,
    };

    #[test]
    fn operands_are_written_as_the_assembler_reads_them() {
        assert_eq!(address(&OPERAND, "", 216).unwrap(), "8(%rax)");
        let indexed = Operand {
            index: Register::R9,
            scale: 4,
            ..OPERAND
        };
        assert_eq!(address(&indexed, "", 216).unwrap(), "8(%rax,%r9,4)");
        let on_stack = Operand {
            base: Register::RSP,
            ..OPERAND
        };
        assert_eq!(address(&on_stack, "", 216).unwrap(), "224(%rsp)");
        let narrow = Operand {
            base: Register::EAX,
            ..OPERAND
        };
        assert_eq!(address(&narrow, "", 216), None);
    }

    #[test]
    fn names_are_taken_from_the_line() {
        for (line, name) in [
            ("\tmovq\tshared+8(%rip), %rax", "shared+8(%rip)"),
            ("\tmovl $1, .L_x(%rip) # note", ".L_x(%rip)"),
            ("\tpushq\tshared+56(%rip)", "shared+56(%rip)"),
            ("\tcall\t*hook(%rip)", "hook(%rip)"),
            ("\tmovups\ts@DTPOFF+16(%rcx), %xmm0", "s@DTPOFF+16(%rcx)"),
        ] {
            assert_eq!(named(line).as_deref(), Some(name));
        }
        assert_eq!(named("\tmovq\t%rax, %rbx"), None);
    }

    #[test]
    fn only_the_functions_in_question_get_labels() {
        let text = "f:\n\tnop\n\t.cfi_endproc\ng: # @g\n.LFB1:\n\tnop\n\t.loc 1 2\n\tret\n\t.cfi_endproc\n";
        let omission = Omission {
            names: vec!["f2".to_owned(), "g".to_owned()],
            start: 0,
            accesses: Vec::new(),
            stores: Vec::new(),
            float: false,
            wide: false,
        };
        assert_eq!(label(text, &[omission]).lines, [5, 7]);
    }
}
