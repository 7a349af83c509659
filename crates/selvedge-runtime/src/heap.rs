//! The program's heap.
//!
//! Every thread allocates from a region of its own, upwards, and nothing is used twice within an
//! execution. So the address of a block depends only on what the same thread allocated before,
//! and a freed block stays recognisable. Which bytes may be accessed is kept beside, one byte per
//! word.

use std::io;

use selvedge_core::{Site, ThreadId};
use serde::{Deserialize, Serialize};

use crate::access::FREED;
use crate::arena::{self, HEAPS, LIVENESS, PAGE, pointer, round_up};
use crate::loader::Range;

/// Unusable bytes between blocks.
const RED_ZONE: usize = 16;
/// How much of a region is committed at a time.
const STEP: usize = 1 << 20;

/// A block that was allocated in this execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct HeapBlock {
    /// Its first byte.
    pub start: u64,
    /// How many bytes were asked for.
    pub size: u64,
    /// The thread that allocated it.
    pub thread: ThreadId,
    /// Where.
    pub site: Site,
    /// The thread that freed it and the place, if it was freed.
    pub freed: Option<(ThreadId, Site)>,
}

/// The heap of one thread.
pub(crate) struct Region {
    start: usize,
    end: usize,
    cursor: usize,
    opened: usize,
    blocks: Vec<HeapBlock>,
    /// The blocks that constructors left, and where the rest begins.
    boot: Vec<HeapBlock>,
    boot_end: usize,
    /// The number of the list of all blocks where states are saved; zero if it may have none.
    pub(crate) list: u32,
}

impl Region {
    /// The region of thread `index`.
    pub(crate) fn new(index: usize, size: usize) -> Region {
        let start = HEAPS + index * size;
        Region {
            start,
            end: start + size,
            cursor: start,
            opened: start,
            blocks: Vec::new(),
            boot: Vec::new(),
            boot_end: start,
            list: 0,
        }
    }

    /// Takes `size` bytes behind all that were ever taken; `None` if they do not fit.
    pub(crate) fn take(
        &mut self,
        size: usize,
        alignment: usize,
        by: (ThreadId, Site),
    ) -> Option<usize> {
        let place = room_after(self.cursor, size, alignment)?;
        self.insert(self.blocks.len(), place, size, by)
    }

    /// Takes `size` bytes, the first that are free; `None` if they do not fit.
    pub(crate) fn take_again(
        &mut self,
        size: usize,
        alignment: usize,
        by: (ThreadId, Site),
    ) -> Option<usize> {
        let mut index = self.boot.len();
        let mut place = room_after(self.boot_end, size, alignment)?;
        while let Some(block) = self.blocks.get(index)
            && place.end > block.start as usize
        {
            let end = round_up((block.start + block.size) as usize, 16);
            place = room_after(end, size, alignment)?;
            index += 1;
        }
        let start = self.insert(index, place, size, by)?;
        // SAFETY: committed now, and nobody else's.
        unsafe { pointer::<u8>(start).write_bytes(0, size) };
        Some(start)
    }

    /// Makes the block with number `index`, in order of addresses, of `size` bytes at `place`.
    fn insert(
        &mut self,
        index: usize,
        place: Range,
        size: usize,
        (thread, site): (ThreadId, Site),
    ) -> Option<usize> {
        if place.end > self.end {
            return None;
        }
        self.commit(place.end).ok()?;
        self.cursor = self.cursor.max(place.end - RED_ZONE);
        mark(place.start, size, 8, (size % 8) as u8);
        let block = HeapBlock {
            start: place.start as u64,
            size: size as u64,
            thread,
            site,
            freed: None,
        };
        self.blocks.insert(index, block);
        self.list = 0;
        Some(place.start)
    }

    /// Makes the bytes up to `end` usable.
    fn commit(&mut self, end: usize) -> io::Result<()> {
        if end > self.opened {
            let grown = round_up(end - self.opened, STEP).min(self.end - self.opened);
            arena::open(self.opened, grown)?;
            self.opened += grown;
        }
        Ok(())
    }

    /// Frees the block that begins at `address`, whose bytes may be taken again.
    pub(crate) fn give_back(&mut self, address: usize, by: (ThreadId, Site)) {
        self.free(address, by);
        if !self.is_from_boot(address) {
            self.blocks.retain(|block| block.start as usize != address);
        }
    }

    /// Makes `blocks` those that there are. Those that constructors left come first; the bytes of all
    /// others are zero.
    pub(crate) fn set_blocks(&mut self, blocks: &[HeapBlock]) {
        for block in &self.blocks {
            mark(block.start as usize, block.size as usize, FREED, FREED);
        }
        self.list = 0;
        self.blocks.clear();
        self.blocks.extend_from_slice(blocks);
        let end = blocks.last().map_or(0, |last| last.start + last.size);
        // They may have been saved in another process.
        if let Err(problem) = self.commit(end as usize + RED_ZONE) {
            panic!("no memory for a heap that was there before: {problem}");
        }
        for block in &self.blocks {
            let (start, size) = (block.start as usize, block.size as usize);
            match block.freed {
                None => mark(start, size, 8, (size % 8) as u8),
                Some(_) => mark(start, size, FREED, FREED),
            }
        }
    }

    /// Back to what constructors left.
    pub(crate) fn begin_again(&mut self) {
        let boot = std::mem::take(&mut self.boot);
        self.set_blocks(&boot);
        self.boot = boot;
    }

    /// Where the part that is in use ends, and the number of its blocks.
    pub(crate) fn extent(&self) -> (usize, usize) {
        (self.cursor, self.blocks.len())
    }

    /// The part that is in use.
    pub(crate) fn in_use(&self) -> (usize, usize) {
        (self.start, self.cursor)
    }

    /// Forgets what was allocated since the region had that [`extent`](Region::extent).
    pub(crate) fn take_back(&mut self, (cursor, blocks): (usize, usize)) {
        if self.cursor != cursor {
            let used = self.cursor - cursor;
            // SAFETY: as in `reset`.
            unsafe {
                pointer::<u8>(cursor).write_bytes(0, used);
                pointer::<u8>(state_of(cursor)).write_bytes(0, used / 8);
            }
            self.cursor = cursor;
            self.blocks.truncate(blocks);
        }
    }

    /// Makes the block that begins at `address`, which was freed last, live again.
    pub(crate) fn unfree(&mut self, address: usize) {
        let after = self
            .blocks
            .partition_point(|block| block.start as usize <= address);
        let block = &mut self.blocks[after - 1];
        block.freed = None;
        let size = block.size as usize;
        mark(address, size, 8, (size % 8) as u8);
    }

    /// Bytes of the region in use.
    pub(crate) fn used(&self) -> usize {
        self.cursor - self.start
    }

    /// The last block that begins at or before `address`.
    pub(crate) fn find(&self, address: usize) -> Option<&HeapBlock> {
        let after = self
            .blocks
            .partition_point(|block| block.start as usize <= address);
        Some(&self.blocks[after.checked_sub(1)?])
    }

    /// Frees the block that begins at `address`.
    pub(crate) fn free(&mut self, address: usize, by: (ThreadId, Site)) {
        let after = self
            .blocks
            .partition_point(|block| block.start as usize <= address);
        let block = &mut self.blocks[after - 1];
        block.freed = Some(by);
        self.list = 0;
        mark(block.start as usize, block.size as usize, FREED, FREED);
    }

    /// Makes the block that begins at `address`, which was freed, a new one.
    pub(crate) fn revive(&mut self, address: usize, (thread, site): (ThreadId, Site)) {
        let after = self
            .blocks
            .partition_point(|block| block.start as usize <= address);
        let block = &mut self.blocks[after - 1];
        (block.thread, block.site, block.freed) = (thread, site, None);
        let size = block.size as usize;
        mark(address, size, 8, (size % 8) as u8);
    }

    /// All blocks of this execution, in the order of their allocation.
    pub(crate) fn blocks(&self) -> &[HeapBlock] {
        &self.blocks
    }

    /// Whether the block at `address` was allocated by constructors.
    pub(crate) fn is_from_boot(&self, address: usize) -> bool {
        address < self.boot_end
    }

    /// Makes what was allocated so far part of the initial state; returns where it lies.
    pub(crate) fn keep(&mut self) -> Option<Range> {
        self.list = 0;
        self.boot.clone_from(&self.blocks);
        if self.blocks.is_empty() {
            return None;
        }
        self.cursor = round_up(self.cursor, PAGE);
        self.boot_end = self.cursor;
        Some(Range {
            start: self.start,
            end: self.cursor,
        })
    }

    /// Forgets everything that was allocated since then and leaves zeros behind.
    pub(crate) fn reset(&mut self) {
        self.list = 0;
        if self.cursor != self.boot_end {
            let used = self.cursor - self.boot_end;
            // SAFETY: the bytes up to the cursor are committed, their states are mapped, and no
            // fiber runs during a reset.
            unsafe {
                pointer::<u8>(self.boot_end).write_bytes(0, used);
                pointer::<u8>(state_of(self.boot_end)).write_bytes(0, used / 8);
            }
            self.cursor = self.boot_end;
            self.blocks.truncate(self.boot.len());
        }
        for (block, before) in self.blocks.iter_mut().zip(&self.boot) {
            if block.freed != before.freed {
                *block = *before;
                mark(
                    block.start as usize,
                    block.size as usize,
                    8,
                    (block.size % 8) as u8,
                );
            }
        }
    }
}

/// Where `size` bytes lie that come next after `end`, with the unusable bytes behind them.
fn room_after(end: usize, size: usize, alignment: usize) -> Option<Range> {
    let alignment = alignment.max(16);
    let start = end.checked_add(RED_ZONE + alignment - 1)? & !(alignment - 1);
    let end = round_up(start.checked_add(size)?, 16).checked_add(RED_ZONE)?;
    Some(Range { start, end })
}

/// Where the state of the word at `address` is kept.
fn state_of(address: usize) -> usize {
    LIVENESS + (address - HEAPS) / 8
}

/// Sets the state of the words of a block; `last` is that of an incomplete last word.
fn mark(start: usize, size: usize, whole: u8, last: u8) {
    let states = pointer::<u8>(state_of(start));
    // SAFETY: the states of all regions are mapped while a program is loaded.
    unsafe {
        states.write_bytes(whole, size / 8);
        if !size.is_multiple_of(8) {
            states.add(size / 8).write(last);
        }
    }
}
