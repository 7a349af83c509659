//! Source lines of an object file that has not been linked yet.
//!
//! Its debug information has to be relocated first. Each section of code gets a place of its own in a
//! made-up address space, and the debug sections are relocated to that.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use addr2line::Context;
use gimli::{Dwarf, EndianRcSlice, LittleEndian, SectionId};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationKind, RelocationTarget,
    SectionIndex, SectionKind,
};

use crate::place;

/// How debug information is read.
pub(super) type Slice = EndianRcSlice<LittleEndian>;

/// Source lines by section and offset.
pub(super) struct Lines {
    context: Context<Slice>,
    bases: HashMap<SectionIndex, u64>,
}

impl Lines {
    /// Reads the debug information of `file`, if it has any that can be read.
    pub(super) fn read(file: &File<'_>) -> Option<Lines> {
        let (dwarf, bases) = dwarf(file)?;
        let context = Context::from_dwarf(dwarf).ok()?;
        Some(Lines { context, bases })
    }

    /// The file and line that `offset` in `section` was compiled from.
    pub(super) fn find(&self, section: SectionIndex, offset: u64) -> Option<(String, u32)> {
        let address = self.bases.get(&section)? + offset;
        let location = self.context.find_location(address).ok()??;
        Some((place::shorten(Path::new(location.file?)), location.line?))
    }
}

/// The debug information of `file`, and where its sections of code lie in it.
pub(super) fn dwarf(file: &File<'_>) -> Option<(Dwarf<Slice>, HashMap<SectionIndex, u64>)> {
    let mut bases = HashMap::new();
    let mut next = 0x1000;
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        bases.insert(section.index(), next);
        next += section.size().next_multiple_of(0x1000) + 0x1000;
    }
    let load = |id: SectionId| -> Result<Slice, gimli::Error> {
        let bytes = relocated(file, id.name(), &bases).unwrap_or_default();
        Ok(EndianRcSlice::new(Rc::from(bytes), LittleEndian))
    };
    Some((Dwarf::load(load).ok()?, bases))
}

fn relocated(file: &File<'_>, name: &str, bases: &HashMap<SectionIndex, u64>) -> Option<Vec<u8>> {
    let section = file.section_by_name(name)?;
    let mut bytes = section.uncompressed_data().ok()?.into_owned();
    for (offset, relocation) in section.relocations() {
        let RelocationTarget::Symbol(index) = relocation.target() else {
            continue;
        };
        if relocation.kind() != RelocationKind::Absolute {
            continue;
        }
        let Ok(symbol) = file.symbol_by_index(index) else {
            continue;
        };
        let base = symbol
            .section_index()
            .and_then(|s| bases.get(&s))
            .copied()
            .unwrap_or(0);
        let value = (base + symbol.address()).wrapping_add_signed(relocation.addend());
        let size = usize::from(relocation.size() / 8);
        let start = offset as usize;
        if let Some(field) = bytes.get_mut(start..start + size) {
            field.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Some(bytes)
}
