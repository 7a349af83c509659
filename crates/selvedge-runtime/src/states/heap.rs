//! Heaps.

use super::{bytes, push, put};
use crate::heap::HeapBlock;
use crate::runtime::Runtime;

/// The heap of one thread.
#[derive(Default)]
pub(super) struct Image {
    blocks: Box<[HeapBlock]>,
    /// The contents of those that no constructor left, one after the other.
    contents: Box<[u8]>,
}

impl Runtime {
    pub(super) fn identify_heap(&self, thread: usize, into: &mut Vec<u8>) {
        let heap = &self.threads[thread].heap;
        for block in heap.blocks() {
            let (start, size) = (block.start as usize, block.size as usize);
            push(into, start);
            push(into, size << 1 | usize::from(block.freed.is_some()));
            if !heap.is_from_boot(start) {
                into.extend_from_slice(bytes(start, start + size));
            }
        }
    }

    pub(super) fn save_heap(&self, thread: usize) -> Image {
        let heap = &self.threads[thread].heap;
        let own = heap.blocks().iter();
        let own = own.filter(|block| !heap.is_from_boot(block.start as usize));
        Image {
            blocks: heap.blocks().into(),
            contents: own
                .flat_map(|block| bytes(block.start as usize, (block.start + block.size) as usize))
                .copied()
                .collect(),
        }
    }

    pub(super) fn restore_heap(&mut self, thread: usize, number: Option<usize>) {
        let Some(known) = self.threads.get_mut(thread) else {
            return;
        };
        let Some(number) = number else {
            known.heap.begin_again();
            return;
        };
        let image = &self.states.heaps[number];
        known.heap.set_blocks(&image.blocks);
        let mut rest = &image.contents[..];
        for block in &image.blocks {
            if !known.heap.is_from_boot(block.start as usize) {
                let (own, after) = rest.split_at(block.size as usize);
                put(block.start as usize, own);
                rest = after;
            }
        }
    }
}
