//! The state of one location.

use selvedge_core::Value;

use super::numbers::words;
use crate::memory;
use crate::shadow::{self, Cell, MERGED, RELIED_ON};

/// The kind of a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Plain bytes.
    Memory,
    /// A synchronisation object: its abstract state is not kept in memory.
    Object,
    /// The queue of threads that wait for a word to change. It is not kept in memory, and using it is no
    /// access to that word.
    Queue,
}

/// A location and what is known of it in the present execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) address: usize,
    pub(crate) width: u8,
    pub(crate) kind: Kind,
    /// The execution in which it was last touched.
    pub(super) run: u32,
    /// Its value before that.
    pub(super) initial: Value,
    /// The known contents of its memory.
    pub(super) last: Value,
    /// The execution in which its frame was left: it means another variable from then on.
    pub(super) ended: u32,
    /// One more than the number of the location that it is after that.
    pub(super) next_life: u32,
    /// It is what another one is after that.
    pub(super) later_life: bool,
    /// The execution in which another location was found to overlap it.
    pub(super) overlapped: u32,
    /// The cells of the words it lies in, each with the bytes it covers there.
    pub(super) cells: [(*mut Cell, u8); 3],
    /// One more than the number of another location in the same word.
    pub(super) next: u32,
    /// One more than the number of the merged location that it is a part of.
    pub(super) whole: u32,
    /// It is a merged location.
    pub(super) merged: bool,
    /// It was taken for certain that no plain access ever touches it.
    pub(super) relied_on: bool,
}

impl Kind {
    /// The inverse of a cast.
    pub(super) fn of(number: u8) -> Kind {
        [Kind::Memory, Kind::Object, Kind::Queue][usize::from(number)]
    }
}

impl Entry {
    /// A location that was not touched yet.
    pub(super) fn new(
        (address, width, kind): (usize, u8, Kind),
        cells: [(*mut Cell, u8); 3],
    ) -> Entry {
        Entry {
            address,
            width,
            kind,
            run: 0,
            initial: 0,
            last: 0,
            ended: 0,
            next_life: 0,
            later_life: false,
            overlapped: 0,
            cells,
            next: 0,
            whole: 0,
            merged: false,
            relied_on: false,
        }
    }

    /// Whether its memory holds something else than it should, in execution `run`.
    #[inline(always)]
    pub(crate) fn lies(&self, run: u32) -> bool {
        self.run == run
            && self.kind == Kind::Memory
            && memory::read(self.address, self.width) != self.last
    }

    /// The known contents of its memory, if it was touched in execution `run`.
    pub(super) fn known(&self, run: u32) -> Option<Value> {
        (self.run == run).then_some(self.last)
    }

    /// The address behind its last byte.
    pub(crate) fn end(&self) -> usize {
        self.address + usize::from(self.width)
    }

    /// Whether all bytes of `other` are its own.
    pub(super) fn contains(&self, other: &Entry) -> bool {
        self.address <= other.address && other.end() <= self.end()
    }

    /// Whether it was not touched in execution `run` yet.
    #[inline(always)]
    pub(crate) fn is_new(&self, run: u32) -> bool {
        self.run != run
    }

    /// Whether another location that was touched in execution `run` has some of its bytes.
    #[inline(always)]
    pub(crate) fn is_overlapped(&self, run: u32) -> bool {
        self.overlapped == run
    }

    pub(super) fn words(&self) -> [u64; 2] {
        words(self.address, self.width, self.kind)
    }

    /// The cells it has, with the bytes it covers in each.
    #[inline(always)]
    pub(crate) fn cells(&self) -> impl Iterator<Item = (*mut Cell, u8)> + use<> {
        self.cells.into_iter().filter(|(cell, _)| !cell.is_null())
    }

    pub(super) fn mark_relied_on(&self) {
        for (cell, mask) in self.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            unsafe { (*cell).always |= shadow::halves(mask) << RELIED_ON };
        }
    }

    /// Whether accesses touch parts of it.
    pub(crate) fn is_merged(&self) -> bool {
        self.merged
    }

    pub(super) fn mark_merged(&self) {
        for (cell, _) in self.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            unsafe { (*cell).always |= MERGED };
        }
    }

    /// The state of an object that was used in this execution.
    pub(crate) fn held(&self) -> Value {
        self.initial
    }

    /// The bytes it covers of the word at `word`.
    pub(crate) fn mask_in(&self, word: usize) -> u8 {
        shadow::words(self.address, usize::from(self.width))
            .find(|&(at, _)| at == word)
            .map_or(0, |(_, mask)| mask)
    }

    /// Its value before any visible operation.
    pub(super) fn now(&self) -> Value {
        match self.kind {
            Kind::Queue => 0,
            Kind::Memory | Kind::Object => memory::read(self.address, self.width),
        }
    }

    /// The first visible operation of an execution on it.
    /// Tells whether others have some of its bytes.
    pub(super) fn begin(&mut self, run: u32) -> bool {
        let mut overlaps = false;
        for (cell, mask) in self.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            let cell = unsafe { &mut *cell };
            cell.refresh(run);
            overlaps |= cell.visible & mask != 0;
            cell.visible |= mask;
        }
        self.run = run;
        self.initial = self.now();
        self.last = self.initial;
        overlaps
    }
}
