//! The effect of inline assembly.
//!
//! The compiler knows nothing of it and announces nothing. Instructions that only use registers are
//! allowed. Those that access memory, the stack included, are refused, and so are those whose effect is
//! not known.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, OpAccess, Register,
};
use object::{
    File, Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex,
    SectionKind,
};

use super::index::Index;
use super::{accesses, instructions};

/// The remedy.
pub(super) const HELP: &str = "write the inline assembly as C, with the atomics of <stdatomic.h> or \
                               <atomic> where threads meet";

/// A block of inline assembly in a compiled file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// The section it is in.
    pub(crate) section: SectionIndex,
    /// Where it begins.
    pub(crate) start: u64,
    /// Where it ends.
    pub(crate) end: u64,
}

/// The blocks that the table `section` of `file` tells, in the order of the source; `None` for one
/// that does not end where it began.
pub(crate) fn blocks(file: &File<'_>, section: &str) -> Vec<Option<Block>> {
    let Some(table) = file.section_by_name(section) else {
        return Vec::new();
    };
    let mut ends: Vec<(u64, Option<(SectionIndex, u64)>)> = table
        .relocations()
        .map(|(offset, relocation)| {
            let place = || {
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    return None;
                };
                let symbol = file.symbol_by_index(index).ok()?;
                let address = symbol.address().wrapping_add_signed(relocation.addend());
                Some((symbol.section_index()?, address))
            };
            (offset, place())
        })
        .collect();
    ends.sort_by_key(|&(offset, _)| offset);
    let block = |pair: &[(u64, Option<(SectionIndex, u64)>)]| {
        let [(_, Some((section, start))), (_, Some((other, end)))] = *pair else {
            return None;
        };
        (section == other && start <= end).then_some(Block {
            section,
            start,
            end,
        })
    };
    ends.chunks(2).map(block).collect()
}

/// The finding for a block that leaves the section it began in.
pub(super) const ELSEWHERE: &str = "has inline assembly that goes on in another section";

/// The finding for a block that uses something only the assembler understands.
pub(super) fn uses(unknown: &str) -> String {
    format!("uses {unknown} in inline assembly")
}

/// The instructions of a block; `None` if it is not code.
pub(crate) fn instructions(file: &File<'_>, block: Block) -> Option<Vec<Instruction>> {
    if block.start == block.end {
        return Some(Vec::new());
    }
    let section = file.section_by_index(block.section).ok();
    let code = section
        .filter(|section| section.kind() == SectionKind::Text)
        .and_then(|section| section.data().ok())
        .and_then(|data| data.get(block.start as usize..block.end as usize));
    Some(decoded(code?, block.start))
}

fn decoded(code: &[u8], start: u64) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    decoder.iter().collect()
}

/// Where the block does something that goes unseen, and what.
pub(super) fn refusal(index: &Index<'_>, block: Block) -> Option<(u64, String)> {
    match instructions(index.file, block) {
        Some(mut code) => {
            code.retain(|instruction| !index.is_own(block.section, instruction.ip()));
            unseen(&code)
        }
        None => Some((block.start, "has data in inline assembly".to_owned())),
    }
}

fn unseen(code: &[Instruction]) -> Option<(u64, String)> {
    let mut factory = InstructionInfoFactory::new();
    code.iter()
        // Instructions that are refused everywhere are reported elsewhere, by better names.
        .filter(|instruction| instructions::refusal(instruction).is_none())
        .find_map(|instruction| {
            let what = opaque(&mut factory, instruction)?;
            Some((instruction.ip(), what))
        })
}

fn opaque(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> Option<String> {
    let name = format!("{:?}", instruction.mnemonic()).to_lowercase();
    if instruction.is_invalid() {
        return Some("has bytes in inline assembly that are no instruction".to_owned());
    }
    let info = factory.info(instruction);
    let accesses = !info.used_memory().is_empty() && !instructions::is_on_scratch(instruction);
    if !accesses::touches_nothing(instruction) && accesses {
        return Some(format!("touches memory in inline assembly (`{name}`)"));
    }
    let moves_frame = info.used_registers().iter().any(|used| {
        let frame = matches!(
            used.register().full_register(),
            Register::RSP | Register::RBP
        );
        frame && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead)
    });
    if moves_frame {
        return Some(format!("moves the stack in inline assembly (`{name}`)"));
    }
    match instruction.flow_control() {
        FlowControl::Next
        | FlowControl::UnconditionalBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Exception => None,
        _ => Some(format!(
            "leaves for an unknown place in inline assembly (`{name}`)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &[u8]) -> Option<String> {
        unseen(&decoded(code, 0)).map(|(_, what)| what)
    }

    #[test]
    fn work_on_registers_is_fine() {
        let add_jmp_pause_bsf_lea = [
            0x01, 0xd8, 0xeb, 0x00, 0xf3, 0x90, 0x0f, 0xbc, 0xc1, 0x8d, 0x04, 0x18,
        ];
        assert_eq!(refused(&add_jmp_pause_bsf_lea), None);
        assert_eq!(refused(&[]), None);
    }

    #[test]
    fn memory_is_refused_even_if_no_operand_names_it() {
        for (code, name) in [
            (&[0xc7, 0x00, 1, 0, 0, 0][..], "mov"),
            (&[0x8b, 0x45, 0xfc], "mov"),
            (&[0xf3, 0xa4], "movsb"),
            (&[0x50], "push"),
            (&[0xe8, 0, 0, 0, 0], "call"),
            (&[0xc3], "ret"),
        ] {
            let what = format!("touches memory in inline assembly (`{name}`)");
            assert_eq!(refused(code), Some(what));
        }
    }

    #[test]
    fn switched_stacks_and_jumps_to_anywhere_are_refused() {
        let mov_rsp_rax = [0x48, 0x89, 0xc4];
        assert!(refused(&mov_rsp_rax).unwrap().contains("moves the stack"));
        let jmp_rax = [0xff, 0xe0];
        assert!(refused(&jmp_rax).unwrap().contains("unknown place"));
        assert!(refused(&[0x06]).unwrap().contains("no instruction"));
    }
}
