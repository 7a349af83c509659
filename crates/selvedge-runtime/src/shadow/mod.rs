//! Shadow memory: the accesses that the race check remembers.
//!
//! Every 8-byte word of the program's stacks, heaps and globals has a cell. A cell keeps the
//! accesses that a later one could race with, exactly: an access is forgotten only when a newer one
//! that happens after it covers the same bytes and conflicts with at least as much. So no race is
//! ever missed, and none is reported that is not there.
//!
//! Nothing is cleared between executions: a cell that carries the number of an older execution
//! counts as empty.

mod spills;

use spills::Spills;

use selvedge_core::ThreadEnd;

use crate::arena::{self, HEAPS, IMAGE_SHADOW, SHADOW, STACKS, pointer};
use crate::loader::Range;

/// How an access was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    PlainRead,
    PlainWrite,
    AtomicRead,
    AtomicWrite,
}

impl Kind {
    /// The kinds of access that it races with, as bits.
    #[inline(always)]
    const fn conflicts(self) -> u8 {
        const BY_KIND: [u8; 4] = [0b1010, 0b1111, 0b0010, 0b0011];
        BY_KIND[self as usize]
    }

    /// Whether it races with nothing but plain accesses.
    #[inline(always)]
    const fn is_atomic(self) -> bool {
        matches!(self, Kind::AtomicRead | Kind::AtomicWrite)
    }

    /// Whether it changes memory.
    pub(crate) fn writes(self) -> bool {
        matches!(self, Kind::PlainWrite | Kind::AtomicWrite)
    }
}

/// An access to some bytes of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Record {
    /// The thread's own events before it (for an event: its own index).
    pub(crate) epoch: u32,
    /// Where, relative to the load base.
    pub(crate) site: u32,
    pub(crate) thread: u16,
    /// The bytes of the word it touches.
    pub(crate) mask: u8,
    pub(crate) kind: Kind,
}

impl Record {
    /// Whether it conflicts with `other` on some byte.
    #[inline(always)]
    fn conflicts(&self, other: &Record) -> bool {
        self.mask & other.mask != 0 && self.kind.conflicts() & (1 << other.kind as u8) != 0
    }

    /// Whether everything that races with `other` also races with this.
    #[inline(always)]
    fn covers(&self, other: &Record) -> bool {
        other.mask & !self.mask == 0 && other.kind.conflicts() & !self.kind.conflicts() == 0
    }
}

/// How many accesses a cell holds itself.
const INLINE: usize = 4;

/// The knowledge about one word.
#[repr(C, align(64))]
pub(crate) struct Cell {
    run: u32,
    count: u8,
    /// The bytes that a visible operation touched in this execution.
    pub(crate) visible: u8,
    /// The bytes that a visible operation wrote in this execution.
    pub(crate) written: u8,
    /// The knowledge about the halves of the word for the whole search: those that plain accesses
    /// touched, and from [`RELIED_ON`] on those that were taken for never touched by one; further
    /// [`MERGED`].
    pub(crate) always: u8,
    /// One more than the number of the last location found in this word, for the whole search.
    pub(crate) location: u32,
    /// One more than the number of the spill that holds further accesses.
    spill: u32,
    records: [Record; INLINE],
}

const _: () = assert!(size_of::<Cell>() == 64);

/// The place of the second pair of bits.
pub(crate) const RELIED_ON: u32 = 2;

/// Some bytes of the word belong to a merged location.
pub(crate) const MERGED: u8 = 1 << 4;

/// The halves of a word that have some of these bytes. A counter and the flag beside it often share
/// a word.
#[inline(always)]
pub(crate) fn halves(mask: u8) -> u8 {
    u8::from(mask & 0x0f != 0) | u8::from(mask & 0xf0 != 0) << 1
}

/// All cells.
#[derive(Default)]
pub(crate) struct Shadow {
    image: Range,
    stacks: usize,
    heaps: usize,
    spills: Spills,
}

/// A thread's view at the moment of an access.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) run: u32,
    /// How many events of each thread happen before.
    pub(crate) clock: &'a [u32],
    /// How the threads ended.
    pub(crate) ends: &'a [ThreadEnd],
}

impl View<'_> {
    /// Whether the present point comes after a wait for the end of `thread`.
    pub(crate) fn knows_end(&self, thread: usize) -> bool {
        self.ends[thread].is_known(self.clock)
    }

    /// Whether what another thread did at `epoch` happens before the present point.
    #[inline(always)]
    pub(crate) fn knows(&self, thread: usize, epoch: u32) -> bool {
        self.clock[thread] > epoch || self.ends[thread].orders(epoch, self.clock)
    }
}

impl Shadow {
    /// The shadow of a program with this many bytes of stacks and heaps.
    pub(crate) fn new(stacks: usize, heaps: usize) -> Shadow {
        Shadow {
            image: Range::default(),
            stacks,
            heaps,
            spills: Spills::default(),
        }
    }

    /// The program was loaded at `image`.
    pub(crate) fn place(&mut self, image: Range) {
        self.image = image;
    }

    /// The address space that such a shadow needs, start and size, for an image of `image` bytes.
    pub(crate) fn areas(stacks: usize, heaps: usize, image: usize) -> [(usize, usize); 3] {
        [
            (SHADOW, stacks * 8),
            (SHADOW + (HEAPS - STACKS) * 8, heaps * 8),
            (IMAGE_SHADOW, image * 8),
        ]
    }

    /// The cell of the word that contains `address`, if it has one.
    #[inline(always)]
    pub(crate) fn cell(&self, address: usize) -> Option<*mut Cell> {
        let (from, to) = if address.wrapping_sub(HEAPS) < self.heaps
            || address.wrapping_sub(STACKS) < self.stacks
        {
            (STACKS, SHADOW)
        } else if self.image.contains(address) {
            (self.image.start, IMAGE_SHADOW)
        } else {
            return None;
        };
        Some(pointer(to + ((address - from) >> 3) * size_of::<Cell>()))
    }

    /// Forgets all accesses of earlier executions for good, because their numbers are used up.
    pub(crate) fn forget(&mut self) {
        let image = self.image.end - self.image.start;
        for (start, size) in Shadow::areas(self.stacks, self.heaps, image) {
            arena::discard(start, size);
        }
    }

    /// Begins an execution.
    pub(crate) fn reset(&mut self) {
        self.spills.used = 0;
    }

    /// The number of the spill of a cell, if it has one in execution `run`, and what is in it.
    pub(crate) fn spilled(&self, cell: *mut Cell, run: u32) -> Option<(u32, &[u8])> {
        // SAFETY: as in `access`.
        let cell = unsafe { &*cell };
        if cell.run != run || cell.spill == 0 {
            return None;
        }
        let list = &self.spills.lists[cell.spill as usize - 1];
        let size = size_of_val(&list.records[..]);
        // SAFETY: records are plain data without padding.
        let bytes = unsafe { std::slice::from_raw_parts(list.records.as_ptr().cast(), size) };
        Some((cell.spill, bytes))
    }

    /// Sets what [`spilled`](Shadow::spilled) returned.
    pub(crate) fn restore_spill(&mut self, number: u32, bytes: &[u8]) {
        let list = &mut self.spills.lists[number as usize - 1];
        let records = bytes.chunks_exact(size_of::<Record>());
        list.records.clear();
        list.records.extend(records.map(|record| {
            // SAFETY: it was made of one.
            unsafe { record.as_ptr().cast::<Record>().read_unaligned() }
        }));
        list.plain = list.records.iter().any(|record| !record.kind.is_atomic());
    }

    /// How many spills are in use.
    pub(crate) fn spills(&self) -> usize {
        self.spills.used
    }

    /// Only the first this many spills are in use.
    pub(crate) fn set_spills(&mut self, used: usize) {
        self.spills.used = used;
    }

    /// The contents of a cell in execution `run`, for comparisons.
    pub(crate) fn digest(&self, cell: *mut Cell, run: u32, into: &mut impl std::hash::Hasher) {
        let spilled = self.spilled(cell, run).map_or(&[][..], |(_, bytes)| bytes);
        // SAFETY: as in `access`.
        let cell = unsafe { &*cell };
        if cell.run == run {
            into.write_u8(cell.visible);
            into.write_u8(cell.written);
            let records = &cell.records[..usize::from(cell.count)];
            into.write(format!("{records:?}").as_bytes());
            into.write(spilled);
        } else {
            into.write_u8(0);
        }
    }

    /// An earlier access that `new` would race with.
    pub(crate) fn check(&self, cell: *mut Cell, new: Record, view: View<'_>) -> Option<Record> {
        // SAFETY: as in `access`.
        let cell = unsafe { &*cell };
        (cell.run == view.run)
            .then(|| self.spills.race(cell, &new, view))
            .flatten()
    }

    /// Notes an access, unless it races with an earlier one, which is returned then.
    #[inline(always)]
    pub(crate) fn access(
        &mut self,
        cell: *mut Cell,
        new: Record,
        view: View<'_>,
    ) -> Option<Record> {
        // SAFETY: cells are mapped for as long as the program is loaded, and only one is in use at
        // a time.
        let cell = unsafe { &mut *cell };
        if cell.run != view.run {
            cell.begin(view.run);
            cell.records[0] = new;
            cell.count = 1;
            return None;
        }
        let mut private = cell.spill == 0;
        let mut atomic = new.kind.is_atomic();
        for old in &cell.records[..usize::from(cell.count)] {
            // No other thread has run since: nothing can have changed.
            if old.thread == new.thread && old.epoch == new.epoch && old.covers(&new) {
                return None;
            }
            private &= old.thread == new.thread;
            atomic &= old.kind.is_atomic();
        }
        if private && usize::from(cell.count) < INLINE {
            cell.add_own(new);
            return None;
        }
        if atomic && self.spills.note_atomic(cell, new) {
            return None;
        }
        self.spills.access(cell, new, view)
    }
}

impl Cell {
    /// Makes `cell` what it was when it consisted of these bytes, except for what is known for the
    /// whole search.
    pub(crate) fn restore(cell: *mut Cell, bytes: &[u8]) {
        // SAFETY: the bytes of a cell, which is mapped as long as the program is loaded.
        unsafe {
            let before = bytes.as_ptr().cast::<Cell>();
            let kept = ((*cell).always, (*cell).location);
            cell.cast::<u8>()
                .copy_from(before.cast(), size_of::<Cell>());
            ((*cell).always, (*cell).location) = kept;
        }
    }

    /// Adds an access to a word that only the same thread has accessed.
    #[inline(always)]
    fn add_own(&mut self, new: Record) {
        let mut kept = 0;
        for index in 0..usize::from(self.count) {
            let old = self.records[index];
            self.records[kept] = old;
            kept += usize::from(!new.covers(&old));
        }
        self.records[kept] = new;
        self.count = kept as u8 + 1;
    }

    /// Forgets the accesses that have their bits set.
    fn drop(&mut self, covered: u8) {
        let mut kept = 0;
        for index in 0..usize::from(self.count) {
            self.records[kept] = self.records[index];
            kept += usize::from(covered >> index & 1 == 0);
        }
        self.count = kept as u8;
    }

    /// Forgets what belongs to an older execution.
    #[inline(always)]
    fn begin(&mut self, run: u32) {
        self.run = run;
        self.count = 0;
        self.visible = 0;
        self.written = 0;
        self.spill = 0;
    }

    /// Makes the cell belong to execution `run`.
    #[inline(always)]
    pub(crate) fn refresh(&mut self, run: u32) {
        if self.run != run {
            self.begin(run);
        }
    }

    /// Whether a visible operation of execution `run` touched (or wrote) one of these bytes.
    #[inline(always)]
    pub(crate) fn is_visible(&self, run: u32, mask: u8, written: bool) -> bool {
        let bytes = if written { self.written } else { self.visible };
        self.run == run && bytes & mask != 0
    }

    /// Whether a plain access to these bytes may be an event: see [`is_visible`](Cell::is_visible);
    /// accesses to merged locations always are.
    #[inline(always)]
    pub(crate) fn may_be_visible(&self, run: u32, mask: u8, written: bool) -> bool {
        self.is_visible(run, mask, written) || self.always & MERGED != 0
    }
}

/// The parts of an access of `size` bytes at `address`, word by word: address and mask.
#[inline(always)]
pub(crate) fn words(address: usize, size: usize) -> impl Iterator<Item = (usize, u8)> {
    let end = address + size;
    (address & !7..end).step_by(8).map(move |word| {
        let from = address.max(word) - word;
        let to = end.min(word + 8) - word;
        (word, ((0xff_u16 << from) & !(0xff_u16 << to)) as u8)
    })
}

#[cfg(test)]
mod tests;
