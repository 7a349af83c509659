//! Objects that another compiler has instrumented, as assembly.
//!
//! An object without its source can be checked if it calls ThreadSanitizer's callbacks, which its `__tsan_`
//! symbols tell: those of a Rust library, for example. It is taken apart into assembly, which then goes the
//! way of what our own compilers write, so that the scan looks at it and checks are put behind its stores.
//!
//! What is written must be the same program. So it is assembled and taken apart once more, which has to
//! give the same text; and everything that is not understood is refused.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use iced_x86::{
    ConstantOffsets, Decoder, DecoderOptions, FlowControl, Formatter as _, GasFormatter,
    Instruction, Mnemonic, NumberBase, OpKind, Register,
};
use object::elf::{self, RelocationType};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    Section, SectionFlags, SectionIndex, SectionKind, Symbol, SymbolFlags, SymbolIndex, SymbolKind,
};

use super::Program;
use crate::input;
use crate::problem::Problem;

/// Sections that are left out: how to unwind the stack, which only exceptions need, and notes.
const LEFT_OUT: [&str; 2] = [".eh_frame", ".note"];

/// Whether `path` is such an object.
pub(crate) fn is(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "o")
        && input::read(path).is_ok_and(|bytes| is_instrumented(&bytes))
}

/// Refuses an option that needs the source of everything.
pub(crate) fn refuse(program: &Program, option: &str) -> Result<(), Problem> {
    let mut files = program.files.iter();
    match files.find(|file| is(&program.path(file))) {
        None => Ok(()),
        Some(file) => Err(Problem::request(format!(
            "{option} needs the source of {}",
            file.display()
        ))
        .note("instrumentation by another compiler leaves out what this option is about")
        .help("name the source files instead: selvedge verify FILE…")),
    }
}

fn is_instrumented(bytes: &[u8]) -> bool {
    let called = |symbol: Symbol<'_, '_>| {
        let name = symbol.name().unwrap_or_default();
        symbol.is_undefined() && name.starts_with("__tsan_") && name != "__tsan_init"
    };
    File::parse(bytes).is_ok_and(|file| file.symbols().any(called))
}

/// Whether LLVM wrote an object, which leaves atomic loads beside their callbacks.
pub(super) fn is_of_llvm(bytes: &[u8]) -> bool {
    let comment = |file: File<'_>| {
        let section = file.section_by_name(".comment")?;
        let text = String::from_utf8_lossy(section.data().ok()?).into_owned();
        Some(
            ["clang", "rustc", "LLVM", "flang"]
                .iter()
                .any(|name| text.contains(name)),
        )
    };
    File::parse(bytes).ok().and_then(comment).unwrap_or(false)
}

/// An object as assembly, with the lines of its source if debug information tells them. The error says what
/// is not understood.
pub(super) fn assembly(bytes: &[u8], lines: &Lines) -> Result<String, String> {
    let file = File::parse(bytes).map_err(|_| "it is not an object of this system".to_owned())?;
    Writer::new(&file, lines)?.write()
}

/// The source lines of instructions, by section and address.
#[derive(Default)]
pub(super) struct Lines {
    known: HashMap<(String, u64), (String, u32)>,
}

impl Lines {
    /// What the debug information of the object at `path` tells, as objdump reads it.
    pub(super) fn of(path: &Path) -> Lines {
        let mut command = Command::new("objdump");
        let command = command.args(["-d", "-l", "--no-show-raw-insn"]).arg(path);
        let output = command.env("LC_ALL", "C").output();
        let text = output.map(|output| output.stdout).unwrap_or_default();
        Lines::parse(&String::from_utf8_lossy(&text))
    }

    fn parse(text: &str) -> Lines {
        let mut known = HashMap::new();
        let mut section = String::new();
        let mut at: Option<(String, u32)> = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("Disassembly of section ") {
                section = name.trim_end_matches(':').to_owned();
                at = None;
            } else if line.starts_with('/') {
                let place = line.split(" (discriminator").next().unwrap_or(line);
                let place = place.rsplit_once(':');
                at = place.and_then(|(file, line)| Some((file.to_owned(), line.parse().ok()?)));
            } else if let Some((address, _)) = line.split_once(":\t")
                && let Ok(address) = u64::from_str_radix(address.trim(), 16)
                && let Some(at) = &at
            {
                known.insert((section.clone(), address), at.clone());
            }
        }
        Lines { known }
    }
}

/// A section of code, decoded.
struct Decoded {
    instructions: Vec<(Instruction, ConstantOffsets)>,
    /// The instruction at each address; the end counts as one.
    numbers: HashMap<u64, usize>,
}

struct Writer<'a> {
    file: &'a File<'a>,
    lines: &'a Lines,
    /// The sections that are written, in order.
    sections: Vec<Section<'a, 'a>>,
    /// The number of each.
    numbers: HashMap<SectionIndex, usize>,
    code: HashMap<SectionIndex, Decoded>,
    /// The symbols defined in each section, by address.
    symbols: HashMap<SectionIndex, BTreeMap<u64, Vec<SymbolIndex>>>,
    /// The instructions that something refers to.
    referred: BTreeSet<(usize, usize)>,
    /// The names of the functions in each section, by its number.
    functions: HashMap<usize, Vec<String>>,
    /// The source files that lines are in.
    files: Vec<String>,
    text: String,
}

impl<'a> Writer<'a> {
    fn new(file: &'a File<'a>, lines: &'a Lines) -> Result<Writer<'a>, String> {
        let is_kept = |section: &Section<'_, '_>| {
            let name = section.name().unwrap_or_default();
            flags(section) & elf::SHF_ALLOC.0 != 0
                && section.size() > 0
                && !LEFT_OUT.iter().any(|left| name.starts_with(left))
        };
        // Assemblers write some sections whether they are empty or not, and in an order of their own.
        let mut sections: Vec<Section<'_, '_>> = file.sections().filter(is_kept).collect();
        sections.sort_by(|a, b| a.name().ok().cmp(&b.name().ok()));
        let mut pairs = sections.windows(2);
        if pairs.any(|pair| pair[0].name().ok() == pair[1].name().ok()) {
            return Err("it has two sections of one name".to_owned());
        }
        let mut numbers = HashMap::new();
        let mut code = HashMap::new();
        for (number, section) in sections.iter().enumerate() {
            numbers.insert(section.index(), number);
            if is_code(section) {
                code.insert(section.index(), decode(section)?);
            }
        }
        let mut symbols: HashMap<_, BTreeMap<u64, Vec<SymbolIndex>>> = HashMap::new();
        let mut named: Vec<Symbol<'_, '_>> = file.symbols().collect();
        named.sort_by(|a, b| a.name().ok().cmp(&b.name().ok()));
        for symbol in named {
            let named = !symbol.name().unwrap_or_default().is_empty();
            let defines = !matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File)
                && !is_label(&symbol);
            if let Some(section) = symbol.section_index().filter(|_| named && defines) {
                if !numbers.contains_key(&section) {
                    return Err("it defines symbols outside of what is in memory".to_owned());
                }
                let here = symbols.entry(section).or_default();
                here.entry(symbol.address())
                    .or_default()
                    .push(symbol.index());
            }
        }
        Ok(Writer {
            file,
            lines,
            sections,
            numbers,
            code,
            symbols,
            referred: BTreeSet::new(),
            functions: HashMap::new(),
            files: Vec::new(),
            text: String::new(),
        })
    }

    fn write(mut self) -> Result<String, String> {
        // The bodies come first, to know which instructions need a label.
        let mut bodies = Vec::new();
        for section in std::mem::take(&mut self.sections) {
            let head = head(&section)?;
            let body = match is_code(&section) {
                true => self.code_lines(&section)?,
                false => self.data_lines(&section)?,
            };
            bodies.push((head, section.index(), body));
        }
        let mut text = std::mem::take(&mut self.text);
        for (number, name) in self.files.iter().enumerate() {
            let _ = writeln!(text, "\t.file {} {}", number + 1, quoted(name));
        }
        let mut elsewhere = BTreeSet::new();
        for symbol in self.file.symbols() {
            if symbol.is_common() {
                // The address of such a symbol is its alignment.
                let (size, align) = (symbol.size(), symbol.address().max(1));
                elsewhere.insert(format!("\t.comm {},{size},{align}\n", name_of(&symbol)?));
            } else if symbol.is_undefined() && symbol.is_weak() {
                elsewhere.insert(format!("\t.weak {}\n", name_of(&symbol)?));
            }
        }
        text.extend(elsewhere);
        let mut covered = Vec::new();
        for (number, (head, index, body)) in bodies.into_iter().enumerate() {
            let _ = writeln!(text, "{head}\n.Ld{number}:");
            let is_code = self.code.contains_key(&index);
            for (at, line) in body {
                if let Some(at) = at.filter(|at| self.referred.contains(&(number, *at))) {
                    let _ = writeln!(text, ".Lf{number}_{at}:");
                }
                text.push_str(&line);
            }
            if is_code {
                let _ = writeln!(text, ".Le{number}:");
                let functions = self.functions.remove(&number).unwrap_or_default();
                covered.push((number, functions));
            }
        }
        if !self.files.is_empty() {
            describe(&mut text, &covered);
        }
        text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
        Ok(text)
    }

    /// The lines of a section of code, each with the number of its instruction.
    fn code_lines(
        &mut self,
        section: &Section<'_, '_>,
    ) -> Result<Vec<(Option<usize>, String)>, String> {
        let index = section.index();
        let name = section.name().unwrap_or_default().to_owned();
        let mut relocations: BTreeMap<u64, (RelocationType, RelocationTarget, i64)> =
            BTreeMap::new();
        for (at, relocation) in section.relocations() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                return Err("it has relocations of another system".to_owned());
            };
            relocations.insert(at, (r_type, relocation.target(), relocation.addend()));
        }
        let mut formatter = GasFormatter::new();
        let options = formatter.options_mut();
        options.set_number_base(NumberBase::Decimal);
        options.set_gas_show_mnemonic_size_suffix(true);
        options.set_rip_relative_addresses(true);
        options.set_signed_immediate_operands(true);
        options.set_space_after_operand_separator(true);
        let code = self.code.remove(&index).unwrap_or(Decoded {
            instructions: Vec::new(),
            numbers: HashMap::new(),
        });
        let mut written = Vec::new();
        let mut line_before = None;
        // Where the function at hand ends, and the functions so far.
        let mut open: Option<u64> = None;
        let mut functions = Vec::new();
        let mut framed = false;
        let place = self.numbers.get(&index).copied().unwrap_or_default();
        for (number, (instruction, offsets)) in code.instructions.iter().enumerate() {
            let ip = instruction.ip();
            if open.is_some_and(|end| ip >= end) {
                open = None;
                written.push((None, ends_at(place, &functions)));
            }
            let mut lines = String::new();
            let begun_before = open;
            let begun = self.definitions(index, ip, Some(&code), &mut lines)?;
            if let Some((end, name)) = begun.filter(|(end, _)| *end > ip && open.is_none()) {
                open = Some(end);
                functions.push(name);
                // Exceptions end here: how to unwind the stack is not known.
                lines.push_str("\t.cfi_startproc\n\t.cfi_undefined %rip\n");
            }
            let begun_here = open.is_some() && begun_before != open;
            let line = self.lines.known.get(&(name.clone(), ip)).cloned();
            if let Some((file, line)) = line.clone().filter(|_| line != line_before) {
                let known = self.files.iter().position(|known| *known == file);
                let known = known.unwrap_or_else(|| {
                    self.files.push(file);
                    self.files.len() - 1
                });
                let _ = writeln!(lines, "\t.loc {} {line} 0", known + 1);
            }
            line_before = line.or(line_before);
            let inside = |at: &u64| (ip..ip + instruction.len() as u64).contains(at);
            let mut here = relocations.range(ip..).take_while(|(at, _)| inside(at));
            let relocation = here.next().map(|(at, relocation)| (*at, *relocation));
            if here.next().is_some() {
                return Err(refused(&name, ip, "has two relocations"));
            }
            if begun_here {
                framed = has_frame(&code.instructions[number..]);
            }
            let callback = relocation.is_some_and(|(_, (_, target, _))| self.is_callback(target));
            suits(instruction, callback, framed).map_err(|why| refused(&name, ip, why))?;
            let text = self
                .instruction(
                    &mut formatter,
                    instruction,
                    offsets,
                    relocation,
                    (index, &code),
                )
                .map_err(|why| refused(&name, ip, &why))?;
            // Symbols of functions come before labels of ours, which end no function.
            written.push((None, std::mem::take(&mut lines)));
            written.push((Some(number), format!("\t{text}\n")));
        }
        let mut lines = String::new();
        self.definitions(index, section.size(), Some(&code), &mut lines)?;
        if open.is_some() {
            lines.push_str(&ends_at(place, &functions));
        }
        self.functions.insert(place, functions);
        written.push((Some(code.instructions.len()), lines));
        self.code.insert(index, code);
        Ok(written)
    }

    fn instruction(
        &mut self,
        formatter: &mut GasFormatter,
        instruction: &Instruction,
        offsets: &ConstantOffsets,
        relocation: Option<(u64, (RelocationType, RelocationTarget, i64))>,
        (index, code): (SectionIndex, &Decoded),
    ) -> Result<String, String> {
        if instruction.is_invalid() {
            return Err("cannot be decoded".to_owned());
        }
        // They only fill space, and their forms are many.
        if matches!(instruction.mnemonic(), Mnemonic::Nop) {
            return Ok("nop".to_owned());
        }
        let mut text = String::new();
        formatter.format(instruction, &mut text);
        let (ip, next) = (instruction.ip(), instruction.next_ip());
        let branches = matches!(
            instruction.op0_kind(),
            OpKind::NearBranch64 | OpKind::NearBranch32 | OpKind::NearBranch16
        ) && instruction.flow_control() != FlowControl::Next;
        let target = match relocation {
            Some((at, (kind, target, addend))) => {
                let displacement = ip + offsets.displacement_offset() as u64;
                let immediate = ip + offsets.immediate_offset() as u64;
                let is_memory = instruction.is_ip_rel_memory_operand() && at == displacement;
                if !(is_memory || branches && at == immediate) {
                    return Err("is not position independent (-fPIC)".to_owned());
                }
                // Relative to what follows the instruction.
                let addend = addend + (next - at) as i64;
                Some(self.relative(kind, target, addend, branches)?)
            }
            None if branches => Some(self.label(index, instruction.near_branch_target(), code)?),
            None if instruction.is_ip_rel_memory_operand() => {
                Some(self.label(index, instruction.ip_rel_memory_address(), code)?)
            }
            None => None,
        };
        let Some(target) = target else {
            return Ok(text);
        };
        if branches {
            let (name, _) = text.split_once(' ').ok_or("cannot be written")?;
            return Ok(format!("{name} {target}"));
        }
        // Where the address of a function is read from, the linker may call it directly as well.
        if let (Mnemonic::Call, Some(name)) =
            (instruction.mnemonic(), target.strip_suffix("@GOTPCREL"))
        {
            return Ok(format!("callq {name}@PLT"));
        }
        let (before, after) = text.split_once("(%rip)").ok_or("cannot be written")?;
        let before = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
        Ok(format!("{before}{target}(%rip){after}"))
    }

    /// Whether a relocation is that of a callback that tells of accesses and calls.
    fn is_callback(&self, target: RelocationTarget) -> bool {
        let RelocationTarget::Symbol(symbol) = target else {
            return false;
        };
        let symbol = self.file.symbol_by_index(symbol);
        let name = symbol.ok().and_then(|symbol| symbol.name().ok());
        name.is_some_and(|name| name.starts_with("__tsan_") && name != "__tsan_init")
    }

    /// What a relocation relative to the instruction pointer refers to.
    fn relative(
        &mut self,
        kind: RelocationType,
        target: RelocationTarget,
        addend: i64,
        branches: bool,
    ) -> Result<String, String> {
        let got = [
            elf::R_X86_64_GOTPCREL,
            elf::R_X86_64_GOTPCRELX,
            elf::R_X86_64_REX_GOTPCRELX,
        ];
        let (name, addend) = self.target(target, addend)?;
        match kind {
            elf::R_X86_64_PLT32 | elf::R_X86_64_PC32 if branches && !name.starts_with(".L") => {
                Ok(with(&format!("{name}@PLT"), addend))
            }
            elf::R_X86_64_PLT32 | elf::R_X86_64_PC32 => Ok(with(&name, addend)),
            kind if got.contains(&kind) && addend == 0 => Ok(format!("{name}@GOTPCREL")),
            elf::R_X86_64_TLSGD | elf::R_X86_64_TLSLD | elf::R_X86_64_GOTTPOFF => {
                Err("uses a thread-local variable, which is known from source only".to_owned())
            }
            kind => Err(format!("has a relocation of kind {}", kind.0)),
        }
    }

    /// A symbol or a label, and what is to be added to it.
    fn target(&mut self, target: RelocationTarget, addend: i64) -> Result<(String, i64), String> {
        let RelocationTarget::Symbol(symbol) = target else {
            return Err("refers to no symbol".to_owned());
        };
        let symbol = self.file.symbol_by_index(symbol);
        let symbol = symbol.map_err(|_| "refers to an unknown symbol".to_owned())?;
        if symbol.kind() != SymbolKind::Section && !is_label(&symbol) {
            return Ok((name_of(&symbol)?, addend));
        }
        let addend = addend + symbol.address() as i64;
        let index = symbol.section_index().ok_or("refers to no section")?;
        let Some(&number) = self.numbers.get(&index) else {
            return Err("refers to a section that is not in memory".to_owned());
        };
        // Of the section at hand, the code is not there: see `label`.
        match self.file.section_by_index(index) {
            Ok(section) if is_code(&section) => {
                let address = u64::try_from(addend).map_err(|_| "refers to no instruction")?;
                let code = decode(&section)?;
                Ok((self.label(index, address, &code)?, 0))
            }
            _ => Ok((format!(".Ld{number}"), addend)),
        }
    }

    /// The label of the instruction at `address`.
    fn label(
        &mut self,
        index: SectionIndex,
        address: u64,
        code: &Decoded,
    ) -> Result<String, String> {
        let number = self.numbers.get(&index).ok_or("refers to no section")?;
        let at = code.numbers.get(&address);
        let at = at.ok_or("refers to the middle of an instruction")?;
        self.referred.insert((*number, *at));
        Ok(format!(".Lf{number}_{at}"))
    }

    /// Defines the symbols at `address` of a section, which has `code` or is data; the function among them with
    /// its end.
    fn definitions(
        &mut self,
        section: SectionIndex,
        address: u64,
        code: Option<&Decoded>,
        to: &mut String,
    ) -> Result<Option<(u64, String)>, String> {
        let here = self.symbols.get(&section).and_then(|all| all.get(&address));
        let mut ends = None;
        for index in here.cloned().unwrap_or_default() {
            let symbol = self.file.symbol_by_index(index);
            let symbol = symbol.map_err(|_| "it has a symbol that cannot be read".to_owned())?;
            let name = name_of(&symbol)?;
            if symbol.is_weak() {
                let _ = writeln!(to, "\t.weak {name}");
            } else if symbol.is_global() {
                let _ = writeln!(to, "\t.globl {name}");
            }
            if symbol.scope() == object::SymbolScope::Linkage && !symbol.is_local() {
                let _ = writeln!(to, "\t.hidden {name}");
            }
            let kind = match symbol.kind() {
                SymbolKind::Text if is_indirect(&symbol) => {
                    return Err(format!("its function {name} is chosen when it is loaded"));
                }
                SymbolKind::Text => "function",
                SymbolKind::Data => "object",
                SymbolKind::Tls => return Err(THREAD_LOCAL.to_owned()),
                _ => "notype",
            };
            let end = address + symbol.size();
            // Instructions may become shorter or longer.
            let size = match code {
                Some(code) if symbol.size() > 0 => {
                    format!("{}-{name}", self.label(section, end, code)?)
                }
                _ => symbol.size().to_string(),
            };
            let _ = writeln!(
                to,
                "\t.type {name}, @{kind}\n\t.size {name}, {size}\n{name}:"
            );
            if symbol.kind() == SymbolKind::Text {
                ends = ends.max(Some((end, name)));
            }
        }
        Ok(ends)
    }

    /// The lines of a section of data.
    fn data_lines(
        &mut self,
        section: &Section<'_, '_>,
    ) -> Result<Vec<(Option<usize>, String)>, String> {
        let name = section.name().unwrap_or_default().to_owned();
        let size = section.size();
        let data = section
            .data()
            .map_err(|_| format!("its section {name} cannot be read"))?;
        let mut relocated = BTreeMap::new();
        for (at, relocation) in section.relocations() {
            let absolute = matches!(
                relocation.flags(),
                RelocationFlags::Elf {
                    r_type: elf::R_X86_64_64
                }
            );
            if !absolute {
                return Err(format!(
                    "its section {name} refers to code in a way that is not understood, as tables of jumps do \
                     (-fno-jump-tables)"
                ));
            }
            let (name, addend) = self.target(relocation.target(), relocation.addend())?;
            relocated.insert(at, with(&name, addend));
        }
        let mut text = String::new();
        let mut stops: BTreeSet<u64> = relocated.keys().copied().collect();
        stops.extend(relocated.keys().map(|at| at + 8));
        let symbols = self.symbols.get(&section.index());
        stops.extend(symbols.into_iter().flat_map(BTreeMap::keys));
        stops.extend([0, size]);
        let stops: Vec<u64> = stops.into_iter().filter(|at| *at <= size).collect();
        for (n, &at) in stops.iter().enumerate() {
            self.definitions(section.index(), at, None, &mut text)?;
            let Some(&next) = stops.get(n + 1) else { break };
            if let Some(value) = relocated.get(&at) {
                let _ = writeln!(text, "\t.quad {value}");
                continue;
            }
            match data.get(at as usize..next as usize) {
                Some(bytes) => {
                    for bytes in bytes.chunks(32) {
                        let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
                        let _ = writeln!(text, "\t.byte {}", bytes.join(","));
                    }
                }
                None => {
                    let _ = writeln!(text, "\t.zero {}", next - at);
                }
            }
        }
        Ok(vec![(None, text)])
    }
}

const THREAD_LOCAL: &str = "it has thread-local variables, which are known from source only";

/// Whether a symbol is a label of the compiler's, which assemblers do not keep.
fn is_label(symbol: &Symbol<'_, '_>) -> bool {
    symbol.is_local() && symbol.name().unwrap_or_default().starts_with(".L")
}

/// Whether a function is found by calling another one.
fn is_indirect(symbol: &Symbol<'_, '_>) -> bool {
    const KIND: u8 = 10;
    matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.0 & 15 == KIND)
}

/// Whether a function begins with a frame pointer.
fn has_frame(code: &[(Instruction, ConstantOffsets)]) -> bool {
    let mut code = code.iter().map(|(instruction, _)| instruction);
    let mut code = code.by_ref().filter(|i| i.mnemonic() != Mnemonic::Endbr64);
    let pushes =
        |i: &Instruction| i.mnemonic() == Mnemonic::Push && i.op0_register() == Register::RBP;
    let sets = |i: &Instruction| {
        let registers = (i.op0_register(), i.op1_register());
        i.mnemonic() == Mnemonic::Mov && registers == (Register::RBP, Register::RSP)
    };
    code.next().is_some_and(pushes) && code.next().is_some_and(sets)
}

/// Whether an instruction keeps to the rules that our own compilers are given; `flags::required` says why. The
/// error names the flag.
fn suits(instruction: &Instruction, callback: bool, framed: bool) -> Result<(), &'static str> {
    /// The largest piece that is taken from the stack at once if each page is touched.
    const PAGE: u64 = 4096;
    let base = instruction.memory_base();
    let below = (instruction.memory_displacement64() as i64) < 0;
    let is_large = || {
        instruction.mnemonic() == Mnemonic::Sub
            && instruction.op0_register() == Register::RSP
            && instruction.op1_kind() != OpKind::Register
            && instruction.immediate(1) > PAGE
    };
    match instruction.mnemonic() {
        Mnemonic::Jmp if callback => {
            Err("leaves its function with a jump (-fno-optimize-sibling-calls)")
        }
        _ if callback && !framed => {
            Err("is in a function without a frame pointer (-fno-omit-frame-pointer)")
        }
        _ if base == Register::RSP && below => Err("uses the red zone (-mno-red-zone)"),
        _ if is_large() => Err("allocates much of the stack at once (-fstack-clash-protection)"),
        _ => Ok(()),
    }
}

/// Ends the last one of the functions in the section with this number.
fn ends_at(section: usize, functions: &[String]) -> String {
    let last = functions.len().saturating_sub(1);
    format!(".Lx{section}_{last}:\n\t.cfi_endproc\n")
}

fn refused(section: &str, address: u64, why: &str) -> String {
    format!("the instruction at {section}+{address:#x} {why}")
}

fn flags(section: &Section<'_, '_>) -> u64 {
    match section.flags() {
        SectionFlags::Elf { sh_flags, .. } => sh_flags.0,
        _ => 0,
    }
}

fn is_code(section: &Section<'_, '_>) -> bool {
    flags(section) & elf::SHF_EXECINSTR.0 != 0
}

/// The directives that begin a section.
fn head(section: &Section<'_, '_>) -> Result<String, String> {
    let name = section.name().unwrap_or_default();
    let flags = flags(section);
    let has = |flag: elf::SectionFlags| flags & flag.0 != 0;
    if has(elf::SHF_TLS) {
        return Err(THREAD_LOCAL.to_owned());
    }
    if has(elf::SHF_GROUP) {
        return Err(format!(
            "its section {name} may be defined in several objects, as functions of templates are"
        ));
    }
    if name.starts_with(".gcc_except_table") {
        return Err("it handles exceptions or panics (-C panic=abort)".to_owned());
    }
    let mut letters = String::from("a");
    letters.extend(has(elf::SHF_WRITE).then_some('w'));
    letters.extend(has(elf::SHF_EXECINSTR).then_some('x'));
    let kind = match section.kind() {
        SectionKind::UninitializedData => "nobits",
        _ if name.starts_with(".init_array") => "init_array",
        _ if name.starts_with(".fini_array") => "fini_array",
        _ => "progbits",
    };
    let align = section.align().max(1);
    Ok(format!(
        "\t.section {},\"{letters}\",@{kind}\n\t.balign {align}",
        quoted(name)
    ))
}

fn decode(section: &Section<'_, '_>) -> Result<Decoded, String> {
    let bytes = section.data();
    let bytes = bytes.map_err(|_| "its code cannot be read".to_owned())?;
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let mut instructions = Vec::new();
    let mut numbers = HashMap::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        numbers.insert(instruction.ip(), instructions.len());
        let offsets = decoder.get_constant_offsets(&instruction);
        instructions.push((instruction, offsets));
    }
    numbers.insert(bytes.len() as u64, instructions.len());
    Ok(Decoded {
        instructions,
        numbers,
    })
}

fn name_of(symbol: &Symbol<'_, '_>) -> Result<String, String> {
    let name = symbol.name().unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.$".contains(c);
    match !name.is_empty() && name.chars().all(plain) && !name.starts_with(".L") {
        true => Ok(name.to_owned()),
        false => Err(format!("its symbol {name:?} cannot be written")),
    }
}

fn with(name: &str, addend: i64) -> String {
    match addend {
        0 => name.to_owned(),
        _ => format!("{name}{addend:+}"),
    }
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Debug information that says no more than where lines and functions are, for each section of code.
fn describe(text: &mut String, sections: &[(usize, Vec<String>)]) {
    for (number, functions) in sections {
        let _ = write!(
            text,
            "\t.section .debug_info,\"\",@progbits\n\
             \t.long .Li{number}_end - .Li{number}\n.Li{number}:\n\
             \t.short 4\n\t.long .Labbrev\n\t.byte 8\n\
             \t.uleb128 1\n\t.long .Lline\n\t.quad .Ld{number}\n\t.quad .Le{number} - .Ld{number}\n"
        );
        for (n, name) in functions.iter().enumerate() {
            let _ = write!(
                text,
                "\t.uleb128 2\n\t.asciz \"{name}\"\n\t.quad {name}\n\t.quad .Lx{number}_{n} - {name}\n"
            );
        }
        let _ = write!(text, "\t.byte 0\n.Li{number}_end:\n");
    }
    // A unit with the offset of its lines, its beginning and its size; and a function with its name, its
    // beginning and its size.
    text.push_str(
        "\t.section .debug_abbrev,\"\",@progbits\n.Labbrev:\n\
         \t.uleb128 1\n\t.uleb128 17\n\t.byte 1\n\
         \t.uleb128 16\n\t.uleb128 23\n\t.uleb128 17\n\t.uleb128 1\n\t.uleb128 18\n\t.uleb128 7\n\
         \t.byte 0\n\t.byte 0\n\
         \t.uleb128 2\n\t.uleb128 46\n\t.byte 0\n\
         \t.uleb128 3\n\t.uleb128 8\n\t.uleb128 17\n\t.uleb128 1\n\t.uleb128 18\n\t.uleb128 7\n\
         \t.byte 0\n\t.byte 0\n\t.byte 0\n\
         \t.section .debug_line,\"\",@progbits\n.Lline:\n",
    );
}
