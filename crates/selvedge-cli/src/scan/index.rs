//! Tables of a compiled file that the scan of every function needs.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use object::elf;
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationFlags, RelocationTarget,
    Section, SectionIndex, SectionKind,
};

use super::variables::Variables;
use super::{assembly, is_debug};
use crate::compile::announce::SECTION as ANNOUNCED;
use crate::compile::checks::SECTION as CHECKED;
use crate::compile::inline::SECTION as INLINED;
use crate::compile::traps::SECTION as TRAPS;

/// How the names of sections begin that were put in here.
const OWN_SECTIONS: &str = ".selvedge";

/// A function: where it begins, and its names.
pub(super) type Function = (u64, Vec<String>);

/// The purpose of a piece of code that was put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// It announces the access that comes next.
    Announcement,
    /// It tells that the store before it was made.
    Check,
    /// It ends the execution.
    Trap,
    /// It performs an access of inline assembly.
    Inline,
}

/// Facts that are looked up for every function.
pub(super) struct Index<'a> {
    /// The file.
    pub(super) file: &'a File<'a>,
    /// Its functions by section.
    pub(super) functions: HashMap<SectionIndex, Vec<Function>>,
    /// Places in the code that are not only reached from the code before them.
    pub(super) entries: HashMap<SectionIndex, BTreeSet<u64>>,
    /// Code that was put in later, by section: where each piece begins, where it ends, and what it
    /// is for.
    own: HashMap<SectionIndex, BTreeMap<u64, (u64, Own)>>,
    /// Read when the first function needs them.
    pub(super) variables: OnceCell<Option<Variables>>,
}

impl<'a> Index<'a> {
    /// Looks through `file`.
    pub(super) fn new(file: &'a File<'a>) -> Index<'a> {
        let mut functions: HashMap<SectionIndex, Vec<Function>> = HashMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            if let (Some(section), Ok(name)) = (symbol.section_index(), symbol.name())
                && !name.is_empty()
                && !name.starts_with('.')
            {
                let names = functions.entry(section).or_default();
                names.push((symbol.address(), vec![name.to_owned()]));
            }
        }
        for list in functions.values_mut() {
            list.sort();
            list.dedup_by(|(next, names), (start, known)| {
                let same = next == start;
                if same {
                    known.append(names);
                }
                same
            });
        }
        let entries = entries(file);
        let mut own: HashMap<SectionIndex, BTreeMap<u64, (u64, Own)>> = HashMap::new();
        for (section, what) in [
            (ANNOUNCED, Own::Announcement),
            (CHECKED, Own::Check),
            (TRAPS, Own::Trap),
            (INLINED, Own::Inline),
        ] {
            for block in assembly::blocks(file, section).into_iter().flatten() {
                let pieces = own.entry(block.section).or_default();
                pieces.insert(block.start, (block.end, what));
            }
        }
        Index {
            file,
            functions,
            entries,
            own,
            variables: OnceCell::new(),
        }
    }
}

impl Index<'_> {
    /// The last piece of code that was put in before `ip` or at it.
    fn own_before(&self, section: SectionIndex, ip: u64) -> Option<(u64, (u64, Own))> {
        let pieces = self.own.get(&section)?;
        let (&start, &piece) = pieces.range(..=ip).next_back()?;
        Some((start, piece))
    }

    /// Whether the instruction at `ip` was put in later.
    pub(super) fn is_own(&self, section: SectionIndex, ip: u64) -> bool {
        let piece = self.own_before(section, ip);
        piece.is_some_and(|(_, (end, _))| ip < end)
    }

    /// Whether the access at `ip` comes right after its announcement by hand.
    pub(super) fn is_announced(&self, section: SectionIndex, ip: u64) -> bool {
        let piece = ip
            .checked_sub(1)
            .and_then(|ip| self.own_before(section, ip));
        piece.is_some_and(|(_, piece)| piece == (ip, Own::Announcement))
    }

    /// Whether code that ends the execution begins at `ip`.
    pub(super) fn is_trapped(&self, section: SectionIndex, ip: u64) -> bool {
        let piece = self.own_before(section, ip);
        piece.is_some_and(|(start, (_, what))| start == ip && what == Own::Trap)
    }

    /// Whether a check begins at `ip`.
    pub(super) fn is_checked(&self, section: SectionIndex, ip: u64) -> bool {
        let piece = self.own_before(section, ip);
        piece.is_some_and(|(start, (_, what))| start == ip && what == Own::Check)
    }
}

/// Places in the code whose address is taken: labels of `switch` tables and of computed jumps.
fn entries(file: &File<'_>) -> HashMap<SectionIndex, BTreeSet<u64>> {
    // Tables hold distances from their own beginning, which their users tell.
    let mut tables: BTreeSet<(usize, i64)> = BTreeSet::new();
    // Where in a table it stands, the section it points to, and the offset there.
    let mut found = Vec::new();
    let own = |section: &Section<'_, '_>| {
        let name = section.name();
        name.is_ok_and(|name| name.starts_with(OWN_SECTIONS))
    };
    let loaded = |section: &Section<'_, '_>| !is_debug(section) && !own(section);
    for section in file.sections().filter(loaded) {
        let is_code = section.kind() == SectionKind::Text;
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let Ok(symbol) = file.symbol_by_index(index) else {
                continue;
            };
            let Some(target) = symbol.section_index() else {
                continue;
            };
            let address = (symbol.address() as i64).wrapping_add(relocation.addend());
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let relative = matches!(r_type, elf::R_X86_64_PC32 | elf::R_X86_64_PLT32);
            let from = (relative && !is_code).then_some((section.index(), offset));
            let address = address.wrapping_add(if relative && is_code { 4 } else { 0 });
            if is_code {
                tables.insert((target.0, address));
            }
            found.push((from, target, address));
        }
    }
    let mut entries: HashMap<SectionIndex, BTreeSet<u64>> = HashMap::new();
    for (from, target, address) in found {
        let address = match from {
            Some((section, offset)) => {
                let here = (section.0, offset as i64);
                let table = tables.range(..=here).next_back();
                let table = table.filter(|table| table.0 == section.0);
                table.map(|table| address - (here.1 - table.1))
            }
            None => Some(address),
        };
        if let Some(address) = address {
            entries.entry(target).or_default().insert(address as u64);
        }
    }
    entries
}
