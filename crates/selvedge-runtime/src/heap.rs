//! The program's heap.
//!
//! Every thread allocates from a region of its own, upwards, and nothing is used twice within an
//! execution. So the address of a block depends only on what the same thread allocated before,
//! and a freed block stays recognisable.

use crate::arena::{self, HEAPS, PAGE, round_up};

/// Unusable bytes between blocks.
const RED_ZONE: usize = 16;
/// How much of a region is committed at a time.
const STEP: usize = 1 << 20;

/// A block that was allocated in this execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBlock {
    /// Its first byte.
    pub start: u64,
    /// How many bytes were asked for.
    pub size: u64,
    /// The thread that allocated it.
    pub thread: selvedge_core::ThreadId,
    /// Where.
    pub site: selvedge_core::Site,
    /// Who freed it where, if it was freed.
    pub freed: Option<(selvedge_core::ThreadId, selvedge_core::Site)>,
}

/// The heap of one thread.
pub(crate) struct Region {
    start: usize,
    end: usize,
    cursor: usize,
    opened: usize,
    blocks: Vec<HeapBlock>,
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
        }
    }

    /// Takes `size` bytes; `None` if they do not fit.
    pub(crate) fn take(&mut self, size: usize, alignment: usize) -> Option<usize> {
        let alignment = alignment.max(16);
        let start = self.cursor.checked_add(RED_ZONE + alignment - 1)? & !(alignment - 1);
        let end = round_up(start.checked_add(size.max(1))?, 16);
        if end.checked_add(RED_ZONE)? > self.end {
            return None;
        }
        if end + RED_ZONE > self.opened {
            let grown = round_up(end + RED_ZONE - self.opened, STEP).min(self.end - self.opened);
            arena::open(self.opened, grown).ok()?;
            self.opened += grown;
        }
        self.cursor = end;
        Some(start)
    }

    /// Notes a block that `take` returned.
    pub(crate) fn note(&mut self, block: HeapBlock) {
        self.blocks.push(block);
    }

    /// Bytes of the region in use.
    pub(crate) fn used(&self) -> usize {
        self.cursor - self.start
    }

    /// The block that contains `address`, or else the last one before it.
    pub(crate) fn block_at_or_before(&self, address: usize) -> Option<usize> {
        let after = self.blocks.partition_point(|b| b.start as usize <= address);
        after.checked_sub(1)
    }

    /// The block with this number.
    pub(crate) fn block_mut(&mut self, index: usize) -> &mut HeapBlock {
        &mut self.blocks[index]
    }

    /// The block with this number.
    pub(crate) fn block(&self, index: usize) -> &HeapBlock {
        &self.blocks[index]
    }

    /// Forgets everything that was allocated and leaves zeros behind.
    pub(crate) fn reset(&mut self) {
        if self.cursor != self.start {
            // SAFETY: the bytes up to the cursor are committed, and no fiber runs during a reset.
            unsafe { arena::pointer::<u8>(self.start).write_bytes(0, self.used()) };
            self.cursor = self.start;
            self.blocks.clear();
        }
    }
}

/// The largest address space a region may take, so that the shadow of all of them fits.
pub(crate) fn fits(region: usize, threads: usize) -> bool {
    region
        .checked_mul(threads)
        .is_some_and(|all| all <= arena::HEAPS_END - HEAPS - PAGE)
}
