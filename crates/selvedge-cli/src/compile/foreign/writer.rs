//! Writes the sections of an object as assembly.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use iced_x86::{
    ConstantOffsets, FlowControl, Formatter as _, GasFormatter, Instruction, Mnemonic, NumberBase,
    OpKind,
};
use object::elf::{self, RelocationType};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    Section, SectionIndex, Symbol, SymbolIndex, SymbolKind,
};

use super::lines::Lines;
use super::pieces::{
    Decoded, THREAD_LOCAL, decode, describe, ends_at, flags, has_frame, head, is_code, is_indirect,
    is_label, name_of, quoted, refused, suits, with,
};

/// Sections that are left out: how to unwind the stack, which only exceptions need, and notes.
const LEFT_OUT: [&str; 2] = [".eh_frame", ".note"];

pub(super) struct Writer<'a> {
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
    pub(super) fn new(file: &'a File<'a>, lines: &'a Lines) -> Result<Writer<'a>, String> {
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

    pub(super) fn write(mut self) -> Result<String, String> {
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

    /// The target of a relocation relative to the instruction pointer.
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
