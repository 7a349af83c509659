//! Accesses that cannot be held apart: what the library is told of before the first of them is made.
//!
//! gcc announces the store of a copied structure, then the load, and only then makes both. Some callbacks announce a load and a store at
//! once, and some a range of memory. The library lets a thread pass when all of them may be made; if others have to act in between,
//! that is never.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};

use super::calls::{Access, Call, Callee, Executable};

/// The places of such accesses.
pub(super) fn find(bytes: &[u8], executable: &Executable) -> Vec<u32> {
    let mut found = Vec::new();
    for call in &executable.calls {
        let together = match Callee::of(&call.callee) {
            Callee::Access(access) => access.compound,
            Callee::Range | Callee::Memory => true,
            _ => false,
        };
        if together {
            found.push(call.site);
        }
    }
    for two in executable.calls.windows(2) {
        if is_copy(bytes, &two[0], &two[1]) {
            found.extend([two[0].site, two[1].site]);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// Whether a store is announced right before a load, and not made before that.
fn is_copy(bytes: &[u8], store: &Call, load: &Call) -> bool {
    let access = |call: &Call| match Callee::of(&call.callee) {
        Callee::Access(access) => Some(access),
        _ => None,
    };
    let (Some(first), Some(second)) = (access(store), access(load)) else {
        return false;
    };
    let single = |access: Access, writes| access.writes == writes && !access.compound;
    if store.function != load.function || !single(first, true) || !single(second, false) {
        return false;
    }
    // A call takes five bytes.
    let between = bytes.get(store.at + 5..load.at);
    between.is_some_and(|code| !stores(code))
}

/// Whether some instruction of a piece of code changes memory that is not on its own stack.
fn stores(code: &[u8]) -> bool {
    let mut about = InstructionInfoFactory::new();
    Decoder::new(64, code, DecoderOptions::NONE)
        .iter()
        .any(|instruction| {
            let used = about.info(&instruction).used_memory().iter();
            let mut written = used.filter(|memory| {
                !matches!(memory.access(), OpAccess::Read | OpAccess::NoMemAccess)
            });
            written.any(|memory| !matches!(memory.base(), Register::RBP | Register::RSP))
        })
}
