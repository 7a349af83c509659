//! Accesses that are announced before an earlier announced one is made.
//!
//! gcc announces the store of a copied structure, then the load, and only then makes both. Where a
//! value was put aside on the stack, and callbacks for the stack are put in, its load is announced
//! between those of a store and the store itself. Some callbacks announce a load and a store at
//! once, and some a range of memory.
//!
//! Such a load comes before the store, and says nothing about whether the store has been made. If
//! both are counted, the library lets a thread pass when both may be made; if others have to act in
//! between, that is never.

use std::collections::HashMap;

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};

use super::calls::{Access, Call, Callee, Executable};

/// The accesses that were found.
#[derive(Debug, Default)]
pub(super) struct Pairs {
    /// Loads that are announced between a store and its callback, and where that returns to.
    pub(super) between: HashMap<u32, u32>,
    /// The places of accesses that cannot be held apart.
    pub(super) together: Vec<u32>,
}

/// Looks through the calls of an executable.
pub(super) fn find(bytes: &[u8], executable: &Executable) -> Pairs {
    let mut pairs = Pairs::default();
    let mut store: Option<(&Call, usize)> = None;
    for call in &executable.calls {
        let callee = Callee::of(&call.callee);
        if let Some((first, end)) = store {
            let same = first.function == call.function;
            let between = bytes.get(end..call.at).filter(|_| same);
            store = match callee {
                Callee::Access(Access { writes: false, .. })
                    if between.is_some_and(|code| !stores(code)) =>
                {
                    pairs.between.insert(call.site, first.site);
                    pairs.together.extend([first.site, call.site]);
                    Some((first, call.at + CALL))
                }
                _ => None,
            };
        }
        match callee {
            Callee::Access(Access { compound: true, .. }) | Callee::Range | Callee::Memory => {
                pairs.together.push(call.site);
            }
            Callee::Access(Access { writes: true, .. }) => store = Some((call, call.at + CALL)),
            _ => {}
        }
    }
    pairs.together.sort_unstable();
    pairs.together.dedup();
    pairs
}

/// A call takes this many bytes.
const CALL: usize = 5;

/// Whether a piece of code may change memory, or does something else than to go on. What saves
/// registers for a callback that was put in does not count.
fn stores(code: &[u8]) -> bool {
    let mut about = InstructionInfoFactory::new();
    for instruction in Decoder::new(64, code, DecoderOptions::NONE) {
        if saves_registers(&instruction) {
            return false;
        }
        let used = about.info(&instruction).used_memory().iter();
        let mut access = used.map(|memory| memory.access());
        let only_read = access.all(|access| {
            matches!(
                access,
                OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
            )
        });
        if !only_read || instruction.flow_control() != FlowControl::Next {
            return true;
        }
    }
    false
}

/// Whether it is where such a callback begins: a step over what may lie below the stack, even if
/// that is nothing.
fn saves_registers(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Lea
        && instruction.op0_register() == Register::RSP
        && instruction.memory_base() == Register::RSP
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64().cast_signed() <= 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_reaches_memory_is_a_store() {
        let lea: [u8; 4] = [0x48, 0x8d, 0x45, 0xf8]; // lea -8(%rbp), %rax
        let load: [u8; 3] = [0x8b, 0x55, 0x9c]; // mov -0x64(%rbp), %edx
        let to_frame: [u8; 3] = [0x89, 0x55, 0xf8]; // mov %edx, -8(%rbp)
        let to_pointer: [u8; 2] = [0x89, 0x10]; // mov %edx, (%rax)
        let jump: [u8; 2] = [0xeb, 0x00];
        let begins: [u8; 5] = [0x48, 0x8d, 0x64, 0x24, 0x80]; // lea -0x80(%rsp), %rsp
        let begins_here: [u8; 4] = [0x48, 0x8d, 0x24, 0x24]; // lea (%rsp), %rsp
        let push: [u8; 1] = [0x50];
        let pop: [u8; 1] = [0x58];
        let ends: [u8; 8] = [0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0]; // lea 0x80(%rsp), %rsp
        let code = |parts: &[&[u8]]| parts.concat();
        assert!(!stores(&code(&[])));
        assert!(!stores(&code(&[&lea, &load])));
        assert!(!stores(&code(&[&load, &begins, &push])));
        assert!(!stores(&code(&[&load, &begins_here, &push])));
        assert!(stores(&code(&[&load, &to_frame])));
        assert!(stores(&code(&[&load, &to_pointer, &begins, &push])));
        assert!(stores(&code(&[&load, &jump])));
        assert!(stores(&code(&[&pop, &ends, &load, &to_pointer])));
        assert!(!stores(&code(&[&pop, &ends, &load])));
    }
}
