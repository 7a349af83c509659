//! Names for addresses, looked up when a failure is shown.

use std::fs;
use std::path::Path;

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object as _, ObjectSymbol as _, SymbolKind};

use crate::problem::PLACE;
use crate::runtime::Runtime;

impl Runtime {
    /// Names the place that a failure or refusal is about.
    pub(crate) fn fill_in_place(&self, message: &str) -> String {
        if message.contains(PLACE) {
            message.replace(PLACE, &self.name(self.failure_place))
        } else {
            message.to_owned()
        }
    }

    /// The memory at `address`, in words.
    pub(crate) fn name(&self, address: usize) -> String {
        if let Some(block) = self.block_near(address) {
            let offset = address as u64 - block.start;
            if offset < block.size.max(1) {
                let size = block.size;
                return match offset {
                    0 => format!("a heap block of {size} bytes"),
                    _ => format!("a heap block of {size} bytes, at offset {offset}"),
                };
            }
        }
        if let Some(owner) = self.layout.stack_owner(address) {
            let part = if address < self.layout.slot(owner).stack_top {
                "the stack"
            } else {
                "a thread-local variable"
            };
            return format!("{part} of T{owner}");
        }
        let symbol = self
            .image
            .whole
            .contains(address)
            .then(|| variable(&self.library, (address - self.image.base) as u64));
        symbol
            .flatten()
            .unwrap_or_else(|| format!("address {address:#x}"))
    }
}

/// The global variable at `address` of the file, with an offset if it is not at its start.
fn variable(library: &Path, address: u64) -> Option<String> {
    let data = fs::read(library).ok()?;
    let file = ElfFile64::<LittleEndian>::parse(&*data).ok()?;
    let symbol = file
        .symbols()
        .chain(file.dynamic_symbols())
        .find(|symbol| {
            let offset = address.wrapping_sub(symbol.address());
            symbol.is_definition()
                && matches!(symbol.kind(), SymbolKind::Data | SymbolKind::Text)
                && offset < symbol.size().max(1)
        })?;
    let name = symbol.name().ok()?;
    Some(match address - symbol.address() {
        0 => format!("`{name}`"),
        offset => format!("`{name}` at offset {offset}"),
    })
}
