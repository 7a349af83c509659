//! The basic blocks of a function.

use std::collections::{BTreeMap, BTreeSet};

use iced_x86::{FlowControl, Instruction, Mnemonic};

/// Instructions that run one after the other.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The first of them.
    pub(super) start: usize,
    /// Where they end.
    pub(super) end: usize,
    /// The blocks that may run before it; nothing is known if one of them is not listed.
    pub(super) before: Option<Vec<usize>>,
    /// Whether it is unreachable padding.
    padding: bool,
}

/// Cuts a function into blocks, in the order of the code. Control may come from anywhere to the
/// addresses in `entries`.
pub(super) fn blocks(code: &[Instruction], entries: &BTreeSet<u64>) -> Vec<Block> {
    let places: BTreeMap<u64, usize> = code
        .iter()
        .enumerate()
        .map(|(n, instruction)| (instruction.ip(), n))
        .collect();
    let target = |instruction: &Instruction| match instruction.flow_control() {
        FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
            places.get(&instruction.near_branch_target()).copied()
        }
        _ => None,
    };
    let ends = |instruction: &Instruction| {
        !matches!(
            instruction.flow_control(),
            FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall
        )
    };
    let mut starts = BTreeSet::from([0]);
    starts.extend(entries.iter().filter_map(|entry| places.get(entry)));
    for (n, instruction) in code.iter().enumerate() {
        starts.extend(target(instruction));
        if ends(instruction) && n + 1 < code.len() {
            starts.insert(n + 1);
        }
    }
    let starts: Vec<usize> = starts.into_iter().collect();
    let number: BTreeMap<usize, usize> = starts.iter().copied().zip(0..).collect();
    let mut before: Vec<Vec<usize>> = vec![Vec::new(); starts.len()];
    let mut blocks = Vec::with_capacity(starts.len());
    for (n, &start) in starts.iter().enumerate() {
        let end = starts.get(n + 1).copied().unwrap_or(code.len());
        let last = &code[end - 1];
        if let Some(target) = target(last) {
            before[number[&target]].push(n);
        }
        let goes_on = !ends(last) || last.flow_control() == FlowControl::ConditionalBranch;
        if goes_on && n + 1 < starts.len() {
            before[n + 1].push(n);
        }
        blocks.push(Block {
            start,
            end,
            before: None,
            padding: false,
        });
    }
    for (block, before) in blocks.iter_mut().zip(before) {
        let open = before.is_empty() || entries.contains(&code[block.start].ip());
        let mut instructions = code[block.start..block.end].iter();
        block.padding = open && instructions.all(|i| i.mnemonic() == Mnemonic::Nop);
        block.before = (!open).then_some(before);
    }
    blocks
}

/// The blocks that can run between two visits of the block `head`, itself included. All of them,
/// if it cannot be told.
pub(super) fn cycle(blocks: &[Block], head: usize) -> BTreeSet<usize> {
    let everything = || (0..blocks.len()).collect();
    // Where control comes from is not known of every block.
    let unknown = |block: &Block| block.before.is_none() && !block.padding;
    if blocks.iter().skip(1).any(unknown) {
        return everything();
    }
    let before = |n: usize| blocks[n].before.iter().flatten().copied();
    let mut backwards = BTreeSet::from([head]);
    let mut open: Vec<usize> = before(head).filter(|&n| n >= head).collect();
    while let Some(n) = open.pop() {
        if backwards.insert(n) {
            open.extend(before(n));
        }
    }
    backwards
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    fn decode(code: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, code, 0, DecoderOptions::NONE)
            .iter()
            .collect()
    }

    #[test]
    fn a_loop_goes_back_to_where_it_began() {
        // 0: nop; 1: dec eax; 3: jne 1; 5: ret
        let code = decode(&[0x90, 0xff, 0xc8, 0x75, 0xfc, 0xc3]);
        let before: Vec<_> = blocks(&code, &BTreeSet::new())
            .into_iter()
            .map(|block| block.before)
            .collect();
        assert_eq!(before, [None, Some(vec![0, 1]), Some(vec![1])]);
    }

    #[test]
    fn a_label_whose_address_is_taken_can_be_reached_from_anywhere() {
        // 0: nop; 1: nop; 2: ret
        let code = decode(&[0x90, 0x90, 0xc3]);
        let found = blocks(&code, &BTreeSet::from([1]));
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].before, None);
    }
}
