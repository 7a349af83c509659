//! The identity of a program: a hash of its compiled files.

use std::fs;

use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionKind,
};

use super::Object;
use crate::problem::Problem;

/// A hash of everything in `objects` that ends up in memory, in this order: code, constants,
/// variables, and what they refer to. Debug information does not count.
pub(super) fn of(objects: &[Object]) -> Result<[u8; 16], Problem> {
    let mut hash = Hash::new();
    for object in objects {
        let failed = || Problem::internal(format!("{}: not an object", object.path.display()));
        let bytes = fs::read(&object.path).map_err(|_| failed())?;
        let file = File::parse(&*bytes).map_err(|_| failed())?;
        add(&mut hash, &file).ok_or_else(failed)?;
    }
    Ok(hash.0.to_le_bytes())
}

fn add(hash: &mut Hash, file: &File<'_>) -> Option<()> {
    let kept = |kind: SectionKind| {
        use SectionKind as K;
        matches!(
            kind,
            K::Text
                | K::Data
                | K::ReadOnlyData
                | K::ReadOnlyString
                | K::ReadOnlyDataWithRel
                | K::UninitializedData
                | K::Tls
                | K::UninitializedTls
        )
    };
    for section in file.sections().filter(|section| kept(section.kind())) {
        hash.field(section.name_bytes().ok()?);
        hash.field(&section.size().to_le_bytes());
        hash.field(section.data().ok()?);
        for (offset, relocation) in section.relocations() {
            hash.field(&offset.to_le_bytes());
            hash.field(&relocation.addend().to_le_bytes());
            if let RelocationTarget::Symbol(index) = relocation.target() {
                let symbol = file.symbol_by_index(index).ok()?;
                hash.field(symbol.name_bytes().ok()?);
                hash.field(&symbol.address().to_le_bytes());
            }
        }
    }
    Some(())
}

/// FNV-1a with 128 bits.
struct Hash(u128);

impl Hash {
    fn new() -> Hash {
        Hash(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    /// Adds bytes, and how many they are.
    fn field(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for &byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }
}
