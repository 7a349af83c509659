//! The machine code of a compiled file, function by function.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use object::elf::{self, RelocationType};
use object::{
    Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget, Section,
    SectionIndex, SectionKind, SymbolIndex,
};
use selvedge_runtime::Protection;

use super::accesses::{self, Reference, Surroundings, Unannounced};
use super::index::Index;
use super::stores::{Store, flags_matter};
use super::variables::{Variable, Variables};
use super::{Inspection, Trap, instructions};
use crate::place;

const INSTRUMENT: &str = "leave out __attribute__((no_sanitize(\"thread\"))) and the like, write \
                          assembly as C, and copy a shared structure to a local variable before \
                          passing it by value";

const SIMPLER: &str = "compile without optimisation and without -m… flags, or with another compiler \
                       (--cc)";

/// Code that a compiler made on its own account, which touches nothing that the program shares, unless a
/// constructor or destructor of the program is inlined there.
const GENERATED: [&str; 11] = [
    "_GLOBAL__",
    "_sub_I_",
    "_sub_D_",
    "tsan.",
    "__cxx_global",
    "__clang_call_terminate",
    "__tls_init",
    "_ZTW",
    "_ZTH",
    "_ZTh",
    "_ZTv",
];

fn is_generated(name: &str) -> bool {
    GENERATED.iter().any(|prefix| name.starts_with(prefix))
        || name.contains("__static_initialization_and_destruction")
}

/// The announcements and checks that have to be put into a function.
#[derive(Clone, Debug)]
pub(crate) struct Omission {
    /// The function's symbols.
    pub(crate) names: Vec<String>,
    /// Where it begins in its section.
    pub(crate) start: u64,
    /// The accesses that the compiler does not announce, in the order of the code.
    pub(crate) accesses: Vec<Unannounced>,
    /// The stores that are announced, or will be, and have no check behind them.
    pub(crate) stores: Vec<Store>,
    /// Whether it keeps numbers in the floating-point stack.
    pub(crate) float: bool,
    /// Whether it uses registers wider than sixteen bytes.
    pub(crate) wide: bool,
}

impl Inspection<'_> {
    /// Looks into a section of code.
    pub(super) fn code(&mut self, section: &Section<'_, '_>, index: &Index<'_>) {
        let Ok(bytes) = section.data() else { return };
        let relocations = Relocations::read(section);
        let mut functions = index
            .functions
            .get(&section.index())
            .cloned()
            .unwrap_or_default();
        // The bytes before the first name are code too.
        if functions.first().is_none_or(|&(start, _)| start > 0) {
            functions.insert(0, (0, vec![String::new()]));
        }
        for (n, (start, names)) in functions.iter().enumerate() {
            let end = functions
                .get(n + 1)
                .map_or(bytes.len() as u64, |next| next.0);
            let code = &bytes[*start as usize..end as usize];
            self.function((section.index(), *start), names, code, &relocations, index);
        }
    }

    fn function(
        &mut self,
        (section, start): (SectionIndex, u64),
        names: &[String],
        bytes: &[u8],
        relocations: &Relocations,
        index: &Index<'_>,
    ) {
        if index.is_trapped(section, start) {
            return;
        }
        let before = self.findings.count();
        let entry = || match names {
            [name, ..] if !name.is_empty() => Trap::Entry(names.to_owned()),
            _ => Trap::Nothing,
        };
        // Code that was put in leaves registers and memory as they were.
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        let code: Vec<Instruction> = decoder
            .iter()
            .filter(|i| !i.is_invalid() && !index.is_own(section, i.ip()))
            .collect();
        self.refused_instructions(section, &code, relocations, &entry());
        let range = start..start + bytes.len() as u64;
        let named =
            |&(index, offset): &(SectionIndex, u64)| index == section && range.contains(&offset);
        if before != self.findings.count() || self.refused.iter().any(named) {
            return;
        }
        let none = BTreeSet::new();
        let entries = index.entries.get(&section).unwrap_or(&none);
        let continued = names.iter().any(|name| name.contains(".cold"));
        let surroundings = Around {
            relocations,
            index,
            place: (section, start),
            leaves_loads: self.source.leaves_loads,
        };
        let verdict = accesses::analyse(&code, entries, continued, &surroundings);
        if !verdict.instrumented && names.iter().any(|name| is_generated(name)) {
            return;
        }
        // Accesses that were announced by hand need not be understood.
        let (own, mut unannounced): (Vec<Unannounced>, Vec<Unannounced>) = verdict
            .unannounced
            .into_iter()
            .partition(|unannounced| index.is_announced(section, unannounced.ip));
        let later = own
            .iter()
            .chain(&unannounced)
            .filter(|unannounced| unannounced.write);
        let later = later.map(|unannounced| Store {
            access: unannounced.clone(),
            flags: flags_matter(&code, unannounced.nth),
        });
        let mut stores: Vec<Store> = verdict.stores.into_iter().chain(later).collect();
        stores.retain(|store| !index.is_checked(section, code[store.access.nth].next_ip()));
        if Protection::Checks.is_off() {
            stores.clear();
        }
        if Protection::Announcements.is_off() {
            stores.retain(|store| unannounced.iter().all(|it| it.ip != store.access.ip));
            unannounced.clear();
        }
        if stores.is_empty() && unannounced.is_empty() {
            return;
        }
        let omission = Omission {
            names: names.to_owned(),
            start,
            accesses: unannounced,
            stores,
            float: verdict.float,
            wide: verdict.wide,
        };
        if self.last {
            let stores = omission.stores.iter().map(|store| store.access.ip);
            let first = omission
                .accesses
                .iter()
                .map(|unannounced| unannounced.ip)
                .chain(stores);
            let place = self.place(section, first.min().unwrap_or(start));
            let what = "has an access that the compiler does not announce";
            self.find(place, what.to_owned(), SIMPLER, entry());
            return;
        }
        let Some(first) = omission.accesses.first() else {
            self.omissions.push(omission);
            return;
        };
        let first = first.ip;
        // Without any callback, what looks plain may be meant as atomic, unless it is too large or
        // the compiler would have announced atomic accesses.
        let large = |unannounced: &Unannounced| {
            unannounced.operand.bytes > 8 || unannounced.operand.repeated
        };
        let sanitized = |name: &String| {
            let attributes = self.source.attributes.as_ref();
            attributes.is_some_and(|attributes| attributes.is_instrumented(name))
        };
        let announceable = verdict.instrumented
            || verdict.fills_result
            || omission.accesses.iter().all(large)
            || names.iter().any(sanitized)
            || self.in_system_header(section, first);
        if !announceable {
            let place = self.place(section, first);
            let what = "touches memory without telling Selvedge: no access in it is instrumented";
            self.find(place, what.to_owned(), INSTRUMENT, entry());
            return;
        }
        let unknown = |unannounced: &Unannounced| unannounced.operand.bytes == 0;
        if omission.wide || omission.accesses.iter().any(unknown) {
            let place = self.place(section, first);
            let what = "has an access that the compiler does not announce";
            self.find(place, what.to_owned(), SIMPLER, entry());
            return;
        }
        self.omissions.push(omission);
    }

    /// Finds the instructions of a function that are refused wherever they are.
    fn refused_instructions(
        &mut self,
        section: SectionIndex,
        code: &[Instruction],
        relocations: &Relocations,
        entry: &Trap,
    ) {
        for instruction in code {
            let trap = match self.block_at(section, instruction.ip()) {
                Some(block) => self.block_trap(block),
                None => entry.clone(),
            };
            if let Some(refusal) = instructions::refusal(instruction) {
                let place = self.place(section, instruction.ip());
                self.find(
                    place,
                    format!("has {}", refusal.what),
                    refusal.help,
                    trap.clone(),
                );
            }
            let relocation = relocations.of(instruction);
            if let Some(problem) = relocation.and_then(|r| static_thread_local(r.kind)) {
                let place = self.place(section, instruction.ip());
                self.find(place, problem.to_owned(), "leave out the tls_model", trap);
            }
        }
    }

    fn in_system_header(&mut self, section: SectionIndex, offset: u64) -> bool {
        let place = self.line(section, offset);
        place.is_some_and(|(path, _)| place::is_system(&path))
    }
}

/// A relocation.
#[derive(Clone, Copy, Debug)]
struct Relocation {
    offset: u64,
    kind: RelocationType,
    symbol: SymbolIndex,
    addend: i64,
}

/// The relocations of a section.
struct Relocations {
    list: BTreeMap<u64, Relocation>,
}

impl Relocations {
    fn read(section: &Section<'_, '_>) -> Relocations {
        let entry = |(offset, relocation): (u64, object::Relocation)| {
            let RelocationFlags::Elf { r_type: kind } = relocation.flags() else {
                return None;
            };
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return None;
            };
            let addend = relocation.addend();
            Some((
                offset,
                Relocation {
                    offset,
                    kind,
                    symbol,
                    addend,
                },
            ))
        };
        Relocations {
            list: section.relocations().filter_map(entry).collect(),
        }
    }

    fn of(&self, instruction: &Instruction) -> Option<Relocation> {
        let range = instruction.ip()..instruction.next_ip();
        self.list.range(range).next().map(|(_, &entry)| entry)
    }
}

/// The surroundings of a function.
struct Around<'a> {
    relocations: &'a Relocations,
    index: &'a Index<'a>,
    /// Where the function begins.
    place: (SectionIndex, u64),
    leaves_loads: bool,
}

impl Surroundings for Around<'_> {
    fn reference(&self, instruction: &Instruction) -> Reference {
        let Some(relocation) = self.relocations.of(instruction) else {
            return Reference::None;
        };
        let Ok(symbol) = self.index.file.symbol_by_index(relocation.symbol) else {
            return Reference::None;
        };
        let through_table = matches!(
            relocation.kind,
            elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX
        );
        let branches = instruction.op0_kind() == OpKind::NearBranch64;
        let leaves = instruction.is_call_near_indirect() || instruction.is_jmp_near_indirect();
        if branches || (leaves && through_table) {
            return match symbol.name() {
                Ok(name) if !name.is_empty() => Reference::Function(name.to_owned()),
                _ => Reference::None,
            };
        }
        let relative = matches!(
            relocation.kind,
            elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 | elf::R_X86_64_TLSGD | elf::R_X86_64_TLSLD
        );
        let rest = match relative || through_table {
            true => instruction.next_ip().wrapping_sub(relocation.offset) as i64,
            false => 0,
        };
        let addend = relocation.addend.wrapping_add(rest);
        match relocation.kind {
            elf::R_X86_64_TLSGD => return Reference::ThreadLocal(relocation.symbol, addend),
            // All of the file's own thread-local variables.
            elf::R_X86_64_TLSLD => return Reference::ThreadLocal(SymbolIndex(0), 0),
            _ => {}
        }
        let target = match symbol.section_index() {
            Some(section) => {
                Reference::Section(section, (symbol.address() as i64).wrapping_add(addend))
            }
            None => Reference::Symbol(relocation.symbol, addend),
        };
        match through_table {
            true => Reference::Entry(Box::new(target)),
            false => target,
        }
    }

    fn is_constant(&self, section: SectionIndex) -> bool {
        let Ok(section) = self.index.file.section_by_index(section) else {
            return false;
        };
        match section.kind() {
            SectionKind::Data
            | SectionKind::UninitializedData
            | SectionKind::Tls
            | SectionKind::UninitializedTls => {
                // Constants that contain addresses lie in writable sections until they are
                // relocated.
                section.name().is_ok_and(|n| n.starts_with(".data.rel.ro"))
            }
            _ => true,
        }
    }

    fn leaves_loads(&self) -> bool {
        self.leaves_loads
    }

    fn variables(&self) -> &[Variable] {
        let read = || Variables::read(self.index.file);
        let variables = self.index.variables.get_or_init(read).as_ref();
        let (section, start) = self.place;
        variables.map_or(&[], |variables| variables.of(section, start))
    }
}

fn static_thread_local(kind: RelocationType) -> Option<&'static str> {
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
