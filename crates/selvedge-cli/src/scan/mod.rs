//! Looks into the user's compiled files for what Selvedge would not see, and refuses it by name.
//!
//! A verdict is only worth something if every access of the program is announced. Whatever is not,
//! is found here before anything runs: see [`instructions`], [`assembly`] and [`accesses`], and the
//! list of the C library's functions in [`selvedge_runtime::symbols`].

mod accesses;
mod assembly;
mod callbacks;
mod code;
mod compute;
mod findings;
mod flow;
mod frame;
mod index;
mod instructions;
mod lines;
mod state;
mod stores;
mod values;
mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use object::elf;
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, Section,
    SectionIndex, SectionKind, Symbol, SymbolFlags,
};
use selvedge_runtime::support::EXPRESSION;
use selvedge_runtime::symbols::{self, Symbol as External};

pub(crate) use self::accesses::{Operand, Silent};
pub(crate) use self::code::Silence;
use self::findings::Findings;
use self::index::Index;
use self::lines::Lines;
pub(crate) use self::stores::Store;
use crate::compile::Object;
use crate::compile::assembly::SECTION as INLINE;
use crate::place;
use crate::problem::Problem;

/// Inspects the compiled files, and makes sure that there is one `main`. Tells for each file what
/// the compiler does not announce and has to be announced by hand.
pub(crate) fn objects(objects: &[Object]) -> Result<Vec<Vec<Silence>>, Problem> {
    let mut findings = Findings::default();
    let mut mains = Vec::new();
    let mut silences = Vec::with_capacity(objects.len());
    for object in objects {
        let bytes = read(&object.path)?;
        let file = parse(&object.path, &bytes)?;
        if defines_main(&file) {
            mains.push(place::shorten(&object.source));
        }
        silences.push(Inspection::new(&file, object, &mut findings).run());
    }
    findings.into_result()?;
    match mains.as_slice() {
        [_] => Ok(silences),
        [] => Err(Problem::request("the program has no main function")
            .help("name every source file of the program: selvedge verify FILE…")),
        _ => Err(Problem::request(format!(
            "main is defined twice: in {}",
            mains.join(" and in ")
        ))
        .help("name the files of one program only")),
    }
}

/// What is left to be announced in a file where that was done by hand. The `last` time, what is left
/// is refused.
pub(crate) fn announced(object: &Object, last: bool) -> Result<Vec<Silence>, Problem> {
    let mut findings = Findings::default();
    let bytes = read(&object.path)?;
    let file = parse(&object.path, &bytes)?;
    let mut inspection = Inspection::new(&file, object, &mut findings);
    inspection.last = last;
    let silences = inspection.run();
    findings.into_result()?;
    Ok(silences)
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
        Inspection::new(&file, object, &mut findings).reference(name)
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
    /// Functions with accesses that the compiler does not announce.
    silences: Vec<Silence>,
    /// Whether there may be none.
    last: bool,
}

impl<'a> Inspection<'a> {
    fn new(file: &'a File<'a>, source: &'a Object, findings: &'a mut Findings) -> Inspection<'a> {
        Inspection {
            file,
            source,
            lines: None,
            findings,
            refused: Vec::new(),
            silences: Vec::new(),
            last: false,
        }
    }

    fn run(mut self) -> Vec<Silence> {
        self.symbols();
        self.inline_assembly();
        let index = Index::new(self.file);
        for section in self
            .file
            .sections()
            .filter(|s| s.kind() == SectionKind::Text)
        {
            self.code(&section, &index);
        }
        self.silences
    }

    fn inline_assembly(&mut self) {
        let blocks = assembly::blocks(self.file, INLINE);
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
            if symbol.is_definition() && symbols::is_reserved(name) && !name.starts_with(EXPRESSION)
            {
                let what = format!("defines {}, a name of Selvedge's own", readable(name));
                let place = self.source_name() + ":";
                self.findings.add(place, what, "give it another name");
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

    fn line(&mut self, section: SectionIndex, offset: u64) -> Option<(String, u32)> {
        let file = self.file;
        let lines = self.lines.get_or_insert_with(|| Lines::read(file));
        lines.as_ref()?.find(section, offset)
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
