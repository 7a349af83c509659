//! Scans the user's compiled files for accesses and instructions that Selvedge would not see, and refuses
//! them by name.
//!
//! A verdict holds only if every access of the program is announced. The scan finds the others before
//! anything runs: see [`instructions`], [`assembly`] and [`accesses`], and the
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
mod library;
mod lines;
mod state;
mod stores;
mod values;
mod variables;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;

use object::elf;
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    Section, SectionFlags, SectionIndex, SectionKind, Symbol, SymbolFlags,
};
use selvedge_runtime::support::EXPRESSION;
use selvedge_runtime::symbols::{self, Symbol as External};

pub(crate) use self::accesses::{Operand, Unannounced};
use self::assembly::Block;
pub(crate) use self::assembly::{blocks, instructions as instructions_of};
pub(crate) use self::code::Omission;
use self::findings::Findings;
pub(crate) use self::findings::{Finding, Trap, listed, refuse};
use self::index::Index;
pub(crate) use self::library::library;
use self::lines::Lines;
pub(crate) use self::stores::Store;
use crate::compile::Object;
use crate::compile::assembly::SECTION as INLINE;
use crate::place;
use crate::problem::Problem;
use crate::project::BUILD_AGAIN;

/// The result of the inspection of a compiled file.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    /// Accesses that the compiler does not announce. They have to be announced by hand.
    pub(crate) omissions: Vec<Omission>,
    /// The code that cannot be checked.
    pub(crate) findings: Vec<Finding>,
}

/// Inspects the compiled files, and makes sure that there is one `main`. A build system may have `built` them.
pub(crate) fn objects(objects: &[Object], built: bool) -> Result<Vec<Scanned>, Problem> {
    let mut defined = HashSet::new();
    let mut mains = Vec::new();
    for object in objects {
        let bytes = read(&object.path)?;
        for symbol in parse(&object.path, &bytes)?.symbols() {
            if symbol.is_global()
                && symbol.is_definition()
                && let Ok(name) = symbol.name()
            {
                if name == "main" {
                    mains.push(place::shorten(&object.source));
                }
                defined.insert(name.to_owned());
            }
        }
    }
    let mut all = Vec::with_capacity(objects.len());
    for object in objects {
        let bytes = read(&object.path)?;
        let file = parse(&object.path, &bytes)?;
        let mut findings = Findings::default();
        if runs_code_on_stack(&file) {
            findings.add(Finding {
                place: String::new(),
                what: "runs code on the stack, as calls of nested functions through pointers do"
                    .to_owned(),
                help: "move nested functions out of the functions they are in".to_owned(),
                trap: Trap::Nothing,
            });
        }
        let mut inspection = Inspection::new(&file, object, &mut findings);
        inspection.symbols(&defined);
        let omissions = inspection.run();
        let findings = findings.into_list();
        all.push(Scanned {
            omissions,
            findings,
        });
    }
    match mains.as_slice() {
        [_] => Ok(all),
        [] => {
            let problem = Problem::request("the program has no main function");
            Err(match built {
                true => problem
                    .note("no file with it was compiled by selvedge cc, or is known of the target")
                    .help(BUILD_AGAIN),
                false => {
                    problem.help("name every source file of the program: selvedge verify FILE…")
                }
            })
        }
        _ => Err(Problem::request(format!(
            "main is defined twice: in {}",
            mains.join(" and in ")
        ))
        .help("name the files of one program only")),
    }
}

/// Whether a file asks for an executable stack.
fn runs_code_on_stack(file: &File<'_>) -> bool {
    let flags = file.section_by_name(".note.GNU-stack").map(|it| it.flags());
    let executable = elf::SHF_EXECINSTR.0;
    matches!(flags, Some(SectionFlags::Elf { sh_flags, .. }) if sh_flags.0 & executable != 0)
}

/// The names that the compiled files use and none of them defines.
pub(crate) fn undefined(objects: &[Object]) -> Result<BTreeSet<String>, Problem> {
    let (mut used, defined) = names(objects)?;
    used.retain(|name| !defined.contains(name));
    Ok(used)
}

/// The names that `objects` define for each other.
pub(crate) fn defined(objects: &[Object]) -> Result<HashSet<String>, Problem> {
    Ok(names(objects)?.1)
}

/// The names that `objects` use and define.
fn names(objects: &[Object]) -> Result<(BTreeSet<String>, HashSet<String>), Problem> {
    let (mut used, mut defined) = (BTreeSet::new(), HashSet::new());
    for object in objects {
        let bytes = read(&object.path)?;
        for symbol in parse(&object.path, &bytes)?.symbols() {
            let name = symbol.name().unwrap_or_default().to_owned();
            if symbol.is_undefined() {
                used.insert(name);
            } else if symbol.is_global() {
                defined.insert(name);
            }
        }
    }
    Ok((used, defined))
}

/// Inspects the code of a file where something was put in. The `last` time, what is left to be
/// announced is a finding.
pub(crate) fn rescan(object: &Object, last: bool) -> Result<Scanned, Problem> {
    let mut findings = Findings::default();
    let bytes = read(&object.path)?;
    let file = parse(&object.path, &bytes)?;
    let mut inspection = Inspection::new(&file, object, &mut findings);
    inspection.last = last;
    let omissions = inspection.run();
    let findings = findings.into_list();
    Ok(Scanned {
        omissions,
        findings,
    })
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

fn is_ifunc(symbol: &Symbol<'_, '_>) -> bool {
    match symbol.flags() {
        SymbolFlags::Elf { st_info, .. } => st_info.st_type() == elf::STT_GNU_IFUNC,
        _ => false,
    }
}

/// A place where the user's code refers to a symbol.
struct User {
    place: String,
    /// Whether it calls it.
    call: bool,
    /// The symbol of the function, if it is in one.
    function: Option<String>,
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
    /// The blocks of inline assembly.
    blocks: Vec<Option<Block>>,
    /// Functions with accesses that the compiler does not announce.
    omissions: Vec<Omission>,
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
            blocks: assembly::blocks(file, INLINE),
            omissions: Vec::new(),
            last: false,
        }
    }

    fn run(mut self) -> Vec<Omission> {
        let index = Index::new(self.file);
        self.inline_assembly(&index);
        for section in self
            .file
            .sections()
            .filter(|s| s.kind() == SectionKind::Text)
        {
            self.code(&section, &index);
        }
        self.omissions
    }

    fn find(&mut self, place: String, what: String, help: &str, trap: Trap) {
        self.findings.add(Finding {
            place,
            what,
            help: help.to_owned(),
            trap,
        });
    }

    /// The number of the block of inline assembly at `offset`.
    fn block_at(&self, section: SectionIndex, offset: u64) -> Option<usize> {
        self.blocks.iter().position(|block| {
            block.is_some_and(|block| {
                block.section == section && (block.start..block.end).contains(&offset)
            })
        })
    }

    /// The trap that ends an execution that reaches a block of inline assembly.
    fn block_trap(&self, block: usize) -> Trap {
        match self.source.assembly.get(block) {
            Some(inline) if inline.in_function => Trap::Block(block),
            _ => Trap::Nothing,
        }
    }

    fn inline_assembly(&mut self, index: &Index<'_>) {
        let blocks = self.blocks.clone();
        if blocks.len() != self.source.assembly.len() {
            let what = "has inline assembly that cannot be found again".to_owned();
            self.find(
                self.source_name() + ":",
                what,
                assembly::HELP,
                Trap::Nothing,
            );
        }
        for (n, (block, inline)) in blocks.into_iter().zip(&self.source.assembly).enumerate() {
            let found = match (block, &inline.opaque) {
                (Some(block), _) if index.is_trapped(block.section, block.start) => None,
                (Some(block), Some(unknown)) => Some((block.start, assembly::uses(unknown))),
                (Some(block), None) => assembly::refusal(index, block),
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
            self.find(place, what, assembly::HELP, self.block_trap(n));
            self.refused
                .extend(block.map(|block| (block.section, offset)));
        }
    }

    /// Functions that are refused and not in `defined`, and functions chosen while the program is
    /// loaded.
    fn symbols(&mut self, defined: &HashSet<String>) {
        let mut refused = BTreeMap::new();
        for symbol in self.file.symbols() {
            let Ok(name) = symbol.name() else { continue };
            if is_ifunc(&symbol) {
                let what = format!(
                    "{} chooses its code while it is loaded (ifunc)",
                    readable(name)
                );
                let help = "make it an ordinary function";
                self.find(self.source_name() + ":", what, help, Trap::Nothing);
            }
            if symbol.is_definition() && symbols::is_reserved(name) && !name.starts_with(EXPRESSION)
            {
                let what = format!("defines {}, a name of Selvedge's own", readable(name));
                let place = self.source_name() + ":";
                self.find(place, what, "give it another name", Trap::Nothing);
            }
            if symbol.is_undefined()
                && !defined.contains(name)
                && let External::Refused(reason) = symbols::classify(name)
            {
                refused.insert(name.to_owned(), reason);
            }
        }
        for (name, reason) in refused {
            let variable = symbols::is_variable(&name);
            let verb = if variable { "uses" } else { "calls" };
            for user in self.references(&name) {
                let trap = match (variable, user.function) {
                    (false, _) => Trap::Callee,
                    (true, Some(function)) => Trap::Entry(vec![function]),
                    (true, None) => Trap::Nothing,
                };
                let what = format!("{verb} {}: {reason}", readable(&name));
                self.find(user.place, what, "", trap);
            }
        }
    }

    /// Where code refers to the symbol `name`; a declaration that nothing uses does no harm.
    fn references(&mut self, name: &str) -> Vec<User> {
        let file = self.file;
        let mut users = Vec::new();
        for section in file.sections().filter(|s| !is_debug(s)) {
            let data = section.data().unwrap_or_default();
            for (offset, relocation) in section.relocations() {
                if let RelocationTarget::Symbol(index) = relocation.target()
                    && let Ok(symbol) = file.symbol_by_index(index)
                    && symbol.name() == Ok(name)
                {
                    let place = self.place(section.index(), offset);
                    let call = calls(
                        relocation.flags(),
                        &data[..(offset as usize).min(data.len())],
                    );
                    let is_code = section.kind() == SectionKind::Text;
                    let function = self.function_at(section.index(), offset);
                    let function = function.filter(|_| is_code).map(str::to_owned);
                    users.push(User {
                        place,
                        call,
                        function,
                    });
                }
            }
        }
        users
    }

    fn line(&mut self, section: SectionIndex, offset: u64) -> Option<(String, u32)> {
        let file = self.file;
        let lines = self.lines.get_or_insert_with(|| Lines::read(file));
        lines.as_ref()?.find(section, offset)
    }

    /// The symbol of the function, or whatever it is, that `offset` is in.
    fn function_at(&self, section: SectionIndex, offset: u64) -> Option<&'a str> {
        let symbols = self.file.symbols();
        let here = symbols.filter(|s| s.section_index() == Some(section) && s.is_definition());
        let named =
            here.filter(|s| s.address() <= offset && !s.name().unwrap_or_default().is_empty());
        let last = named.max_by_key(|s| (s.address(), s.size()))?;
        last.name().ok()
    }

    /// `file:line: function`, as far as it is known.
    fn place(&mut self, section: SectionIndex, offset: u64) -> String {
        let line = self.line(section, offset);
        let function = self.function_at(section, offset).map(readable);
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

/// Whether a relocation with the code `before` it is the target of a call or a jump.
fn calls(flags: RelocationFlags, before: &[u8]) -> bool {
    const INDIRECT: [[u8; 2]; 2] = [[0xff, 0x15], [0xff, 0x25]];
    match flags {
        RelocationFlags::Elf {
            r_type: elf::R_X86_64_PLT32,
        } => true,
        RelocationFlags::Elf {
            r_type: elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX,
        } => INDIRECT.iter().any(|call| before.ends_with(call)),
        _ => false,
    }
}

fn is_debug(section: &Section<'_, '_>) -> bool {
    section
        .name()
        .is_ok_and(|name| name.starts_with(".debug") || name.starts_with(".eh_frame"))
}
