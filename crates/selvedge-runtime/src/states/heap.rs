//! Heaps.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::pieces::Saved;
use super::{States, bytes, decode, push, put};
use crate::heap::HeapBlock;
use crate::posix::state::encode;
use crate::runtime::Runtime;

/// The heap of one thread.
pub(super) struct Image {
    /// The number of the list of its blocks.
    blocks: u32,
    /// The contents of those that no constructor left, one after the other.
    contents: Saved,
}

/// A heap as other processes are told of it.
#[derive(Serialize, Deserialize)]
struct SentHeap<'a> {
    blocks: Vec<HeapBlock>,
    contents: &'a [u8],
}

/// Lists of blocks, each kept once: most heaps differ in contents only.
#[derive(Default)]
pub(super) struct Lists {
    lists: Vec<Box<[HeapBlock]>>,
    numbers: HashMap<Box<[HeapBlock]>, u32>,
    blocks: usize,
}

impl Lists {
    /// The number of a list; never zero.
    fn number(&mut self, blocks: &[HeapBlock]) -> u32 {
        if let Some(&number) = self.numbers.get(blocks) {
            return number;
        }
        self.lists.push(blocks.into());
        self.blocks += blocks.len();
        let number = self.lists.len() as u32;
        self.numbers.insert(blocks.into(), number);
        number
    }

    fn get(&self, number: u32) -> &[HeapBlock] {
        &self.lists[number as usize - 1]
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        2 * self.blocks * size_of::<HeapBlock>()
    }
}

impl Image {
    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Image>() + self.contents.bytes()
    }
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

    pub(super) fn save_heap(&mut self, thread: usize) -> Image {
        let heap = &mut self.threads[thread].heap;
        if heap.list == 0 {
            heap.list = self.states.lists.number(heap.blocks());
        }
        let States {
            contents, pieces, ..
        } = &mut self.states;
        contents.clear();
        for block in heap.blocks() {
            if !heap.is_from_boot(block.start as usize) {
                let (start, size) = (block.start as usize, block.size as usize);
                contents.extend_from_slice(bytes(start, start + size));
            }
        }
        Image {
            blocks: heap.list,
            contents: pieces.save(contents),
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
        let States {
            heaps,
            lists,
            pieces,
            contents,
            ..
        } = &mut self.states;
        let image = &heaps[number];
        let blocks = lists.get(image.blocks);
        if known.heap.list != image.blocks {
            known.heap.set_blocks(blocks);
            known.heap.list = image.blocks;
        }
        pieces.bytes_of(&image.contents, contents);
        let mut rest = &contents[..];
        for block in blocks {
            if !known.heap.is_from_boot(block.start as usize) {
                let (own, after) = rest.split_at(block.size as usize);
                put(block.start as usize, own);
                rest = after;
            }
        }
    }

    pub(super) fn pack_heap(&self, number: usize, into: &mut Vec<u8>) {
        let image = &self.states.heaps[number];
        let mut contents = Vec::new();
        self.states.pieces.bytes_of(&image.contents, &mut contents);
        let packed = SentHeap {
            blocks: self.states.lists.get(image.blocks).to_vec(),
            contents: &contents,
        };
        encode(&packed, into);
    }

    pub(super) fn unpack_heap(&mut self, packed: &[u8]) -> Image {
        let SentHeap { blocks, contents } = decode(packed);
        Image {
            blocks: self.states.lists.number(&blocks),
            contents: self.states.pieces.save(contents),
        }
    }
}
