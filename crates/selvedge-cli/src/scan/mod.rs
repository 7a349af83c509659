//! Looks into the user's compiled files for what Selvedge would not see, and refuses it by name.
//!
//! A verdict is only worth something if every access of the program is announced. Whatever is not,
//! is found here before anything runs: see [`instructions`] and [`unannounced`], and the list of
//! the C library's functions in [`selvedge_runtime::symbols`].

mod assembly;
mod findings;
mod instructions;
mod lines;
mod unannounced;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::elf::{self, RelocationType};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    Section, SectionIndex, SectionKind, Symbol, SymbolFlags, SymbolIndex,
};
use selvedge_runtime::symbols::{self, Symbol as External};

use self::findings::Findings;
use self::lines::Lines;
use self::unannounced::{Target, Walk};
use crate::compile::Object;
use crate::place;
use crate::problem::Problem;

const INSTRUMENT: &str = "leave out __attribute__((no_sanitize(\"thread\"))) and the like, write \
                          assembly as C, and copy a shared structure to a local variable before \
                          passing it by value";

/// Inspects the compiled files, and makes sure that there is one `main`.
pub(crate) fn objects(objects: &[Object]) -> Result<(), Problem> {
    let mut findings = Findings::default();
    let mut mains = Vec::new();
    for object in objects {
        let bytes = read(&object.path)?;
        let file = parse(&object.path, &bytes)?;
        if defines_main(&file) {
            mains.push(place::shorten(&object.source));
        }
        Inspection {
            file: &file,
            source: object,
            lines: None,
            findings: &mut findings,
            refused: Vec::new(),
        }
        .run();
    }
    findings.into_result()?;
    match mains.as_slice() {
        [_] => Ok(()),
        [] => Err(Problem::request("the program has no main function")
            .help("name every source file of the program: selvedge verify FILE…")),
        _ => Err(Problem::request(format!(
            "main is defined twice: in {}",
            mains.join(" and in ")
        ))
        .help("name the files of one program only")),
    }
}

/// Inspects the linked program: what it still needs must be something that the runtime models.
pub(crate) fn library(library: &Path, objects: &[Object]) -> Result<(), Problem> {
    let bytes = read(library)?;
    let file = parse(library, &bytes)?;
    let mut findings = Findings::default();
    let missing = file
        .dynamic_symbols()
        .filter(|symbol| symbol.is_undefined() && !symbol.is_weak());
    let names: BTreeSet<&str> = missing.filter_map(|symbol| symbol.name().ok()).collect();
    for name in names.into_iter().filter(|name| !name.is_empty()) {
        let (what, help) = match symbols::classify(name) {
            External::Known | External::Provided => continue,
            External::Refused(reason) => (format!("calls {}: {reason}", readable(name)), ""),
            External::Unknown => (
                format!("needs {}, which Selvedge does not model", readable(name)),
                "give its source file to selvedge verify, or leave it out of the program",
            ),
        };
        findings.add(user_of(name, objects).unwrap_or_default(), what, help);
    }
    if file
        .dynamic_symbols()
        .chain(file.symbols())
        .any(|symbol| is_ifunc(&symbol))
    {
        findings.add(
            String::new(),
            "chooses functions while it is loaded (ifunc)".to_owned(),
            "",
        );
    }
    findings.into_result()
}

fn read(path: &Path) -> Result<Vec<u8>, Problem> {
    fs::read(path).map_err(|error| Problem::internal(format!("{}: {error}", path.display())))
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<File<'a>, Problem> {
    File::parse(bytes).map_err(|error| {
        Problem::request(format!(
            "the compiler did not write an ELF file for x86-64: {error}"
        ))
        .note(format!("in {}", path.display()))
        .help("leave out flags that change what the compiler writes, such as -flto or -march=…")
    })
}

fn defines_main(file: &File<'_>) -> bool {
    file.symbols()
        .any(|s| s.is_global() && s.is_definition() && s.name() == Ok("main"))
}

fn is_ifunc(symbol: &Symbol<'_, '_>) -> bool {
    match symbol.flags() {
        SymbolFlags::Elf { st_info, .. } => st_info.st_type() == elf::STT_GNU_IFUNC,
        _ => false,
    }
}

/// Where the user's code refers to `name`.
fn user_of(name: &str, objects: &[Object]) -> Option<String> {
    objects.iter().find_map(|object| {
        let bytes = fs::read(&object.path).ok()?;
        let file = File::parse(&*bytes).ok()?;
        let mut findings = Findings::default();
        let mut inspection = Inspection {
            file: &file,
            source: object,
            lines: None,
            findings: &mut findings,
            refused: Vec::new(),
        };
        inspection.reference(name)
    })
}

/// A name as it is written in the source, marked as such.
fn readable(name: &str) -> String {
    format!("`{}`", place::readable(name))
}

/// The inspection of one compiled file.
struct Inspection<'a> {
    file: &'a File<'a>,
    source: &'a Object,
    /// Read when the first finding needs them.
    lines: Option<Option<Lines>>,
    findings: &'a mut Findings,
    /// Where inline assembly was refused.
    refused: Vec<(SectionIndex, u64)>,
}

impl Inspection<'_> {
    fn run(&mut self) {
        self.symbols();
        self.inline_assembly();
        for section in self
            .file
            .sections()
            .filter(|s| s.kind() == SectionKind::Text)
        {
            self.code(&section);
        }
    }

    fn inline_assembly(&mut self) {
        let blocks = assembly::blocks(self.file);
        if blocks.len() != self.source.assembly.len() {
            let what = "has inline assembly that cannot be found again".to_owned();
            self.findings
                .add(self.source_name() + ":", what, assembly::HELP);
        }
        for (block, unknown) in blocks.into_iter().zip(&self.source.assembly) {
            let found = match (block, unknown) {
                (Some(block), Some(unknown)) => Some((block.start, assembly::uses(unknown))),
                (Some(block), None) => assembly::refusal(self.file, block),
                (None, Some(unknown)) => Some((0, assembly::uses(unknown))),
                (None, None) => Some((0, assembly::ELSEWHERE.to_owned())),
            };
            let Some((offset, what)) = found else {
                continue;
            };
            let place = match block {
                Some(block) => self.place(block.section, offset),
                None => self.source_name() + ":",
            };
            self.findings.add(place, what, assembly::HELP);
            self.refused
                .extend(block.map(|block| (block.section, offset)));
        }
    }

    /// Functions that are refused, and functions chosen while the program is loaded.
    fn symbols(&mut self) {
        let mut refused = BTreeMap::new();
        for symbol in self.file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if is_ifunc(&symbol) {
                let what = format!(
                    "{} chooses its code while it is loaded (ifunc)",
                    readable(name)
                );
                self.findings.add(
                    self.source_name() + ":",
                    what,
                    "make it an ordinary function",
                );
            }
            if symbol.is_undefined()
                && let External::Refused(reason) = symbols::classify(name)
            {
                refused.insert(name.to_owned(), reason);
            }
        }
        for (name, reason) in refused {
            if let Some(place) = self.reference(&name) {
                self.findings
                    .add(place, format!("calls {}: {reason}", readable(&name)), "");
            }
        }
    }

    /// Where code refers to the symbol `name`; a declaration that nothing uses does no harm.
    fn reference(&mut self, name: &str) -> Option<String> {
        let file = self.file;
        for section in file.sections().filter(|s| !is_debug(s)) {
            for (offset, relocation) in section.relocations() {
                if let RelocationTarget::Symbol(index) = relocation.target()
                    && let Ok(symbol) = file.symbol_by_index(index)
                    && symbol.name() == Ok(name)
                {
                    return Some(self.place(section.index(), offset));
                }
            }
        }
        None
    }

    fn code(&mut self, section: &Section<'_, '_>) {
        let Ok(bytes) = section.data() else { return };
        let relocations = self.relocations(section);
        let mut functions: Vec<(u64, u64, String)> = self
            .file
            .symbols()
            .filter(|s| s.section_index() == Some(section.index()) && s.is_definition())
            .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_owned())))
            .filter(|(_, _, name)| !name.is_empty() && !name.starts_with('.'))
            .collect();
        functions.sort();
        // What comes before the first name is code too.
        if functions.first().is_none_or(|&(start, ..)| start > 0) {
            functions.insert(0, (0, 0, String::new()));
        }
        for (n, (start, _, name)) in functions.iter().enumerate() {
            let end = functions
                .get(n + 1)
                .map_or(bytes.len() as u64, |next| next.0);
            let code = &bytes[*start as usize..end as usize];
            self.function(section, name, *start, code, &relocations);
        }
    }

    fn function(
        &mut self,
        section: &Section<'_, '_>,
        name: &str,
        start: u64,
        code: &[u8],
        relocations: &Relocations,
    ) {
        let before = self.findings.count();
        let mut walk = Walk::begin(name);
        let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                continue;
            }
            if let Some(refusal) = instructions::refusal(&instruction) {
                let place = self.place(section.index(), instruction.ip());
                self.findings
                    .add(place, format!("has {}", refusal.what), refusal.help);
            }
            let relocation = relocations.within(instruction.ip(), instruction.next_ip());
            if let Some(problem) = relocation.and_then(static_thread_local) {
                let place = self.place(section.index(), instruction.ip());
                self.findings
                    .add(place, problem.to_owned(), "leave out the tls_model");
            }
            if let Some(walk) = &mut walk {
                let symbol =
                    relocation.and_then(|(_, index)| self.file.symbol_by_index(index).ok());
                if let Some(callee) = symbol.as_ref().and_then(|s| s.name().ok()) {
                    walk.call(callee);
                }
                walk.step(&instruction, self.target(relocation, symbol));
            }
        }
        let range = start..start + code.len() as u64;
        let named = |&(index, offset): &(SectionIndex, u64)| {
            index == section.index() && range.contains(&offset)
        };
        if before == self.findings.count()
            && !self.refused.iter().any(named)
            && let Some(access) = walk.and_then(Walk::finish)
            && !self.in_system_header(section.index(), access)
        {
            let place = self.place(section.index(), access);
            let what = "touches memory without telling Selvedge: no access in it is instrumented";
            self.findings.add(place, what.to_owned(), INSTRUMENT);
        }
    }

    fn relocations(&self, section: &Section<'_, '_>) -> Relocations {
        let entry = |(offset, relocation): (u64, object::Relocation)| {
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                return None;
            };
            let RelocationTarget::Symbol(index) = relocation.target() else {
                return None;
            };
            Some((offset, (r_type, index)))
        };
        Relocations(section.relocations().filter_map(entry).collect())
    }

    fn target(
        &self,
        relocation: Option<(RelocationType, SymbolIndex)>,
        symbol: Option<Symbol<'_, '_>>,
    ) -> Target {
        let Some((kind, _)) = relocation else {
            return Target::None;
        };
        if matches!(
            kind,
            elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX
        ) {
            return Target::Constant;
        }
        let section = symbol.and_then(|s| s.section_index());
        match section.and_then(|index| self.file.section_by_index(index).ok()) {
            Some(section) => match section.kind() {
                SectionKind::Data | SectionKind::UninitializedData => {
                    // Constants that contain addresses lie in writable sections until they are
                    // relocated.
                    let relocated = section.name().is_ok_and(|n| n.starts_with(".data.rel.ro"));
                    if relocated {
                        Target::Constant
                    } else {
                        Target::Variable
                    }
                }
                _ => Target::Constant,
            },
            None => Target::Variable,
        }
    }

    fn line(&mut self, section: SectionIndex, offset: u64) -> Option<(String, u32)> {
        let file = self.file;
        let lines = self.lines.get_or_insert_with(|| Lines::read(file));
        lines.as_ref()?.find(section, offset)
    }

    /// Inline functions of the system's headers pass small structures of their own by value, which
    /// gcc does not announce.
    fn in_system_header(&mut self, section: SectionIndex, offset: u64) -> bool {
        let place = self.line(section, offset);
        place.is_some_and(|(path, _)| place::is_system(&path))
    }

    /// `file:line: function`, as far as it is known.
    fn place(&mut self, section: SectionIndex, offset: u64) -> String {
        let file = self.file;
        let line = self.line(section, offset);
        let function = file
            .symbols()
            .filter(|s| s.section_index() == Some(section) && s.is_definition())
            .filter(|s| s.address() <= offset && !s.name().unwrap_or_default().is_empty())
            .max_by_key(|s| (s.address(), s.size()))
            .and_then(|s| s.name().ok().map(readable));
        let line = match line {
            Some((path, line)) => format!("{path}:{line}"),
            None => self.source_name(),
        };
        match function {
            Some(function) => format!("{line}: {function}"),
            None => format!("{line}: the code"),
        }
    }

    fn source_name(&self) -> String {
        place::shorten(&self.source.source)
    }
}

fn is_debug(section: &Section<'_, '_>) -> bool {
    section
        .name()
        .is_ok_and(|name| name.starts_with(".debug") || name.starts_with(".eh_frame"))
}

/// The relocations of a section: kind and symbol by offset.
struct Relocations(BTreeMap<u64, (RelocationType, SymbolIndex)>);

impl Relocations {
    fn within(&self, start: u64, end: u64) -> Option<(RelocationType, SymbolIndex)> {
        self.0.range(start..end).next().map(|(_, &entry)| entry)
    }
}

fn static_thread_local((kind, _): (RelocationType, SymbolIndex)) -> Option<&'static str> {
    let is_static = matches!(
        kind,
        elf::R_X86_64_TPOFF32
            | elf::R_X86_64_TPOFF64
            | elf::R_X86_64_GOTTPOFF
            | elf::R_X86_64_GOTPC32_TLSDESC
            | elf::R_X86_64_TLSDESC_CALL
    );
    is_static.then_some("reaches a thread-local variable in a way that bypasses Selvedge")
}
