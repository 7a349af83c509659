//! Vector clocks of all events in one flat table, in blocks of a fixed number of entries, which processors handle at once.

use std::ops::Range;

use super::Slot;

/// Counts in `into` what `from` counts as well.
#[inline]
pub fn join(into: &mut [u32], from: &[u32]) {
    for (entry, &counted) in into.iter_mut().zip(from) {
        *entry = (*entry).max(counted);
    }
}

/// How many entries are handled at once.
pub(crate) const LANES: usize = 8;

/// One clock for each slot: of each thread, how many of its events are counted.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    width: usize,
    /// How many blocks a clock takes. What is beyond its width is zero.
    stride: usize,
    blocks: Vec<[u32; LANES]>,
}

impl Clocks {
    /// The clock of `slot`.
    #[inline]
    pub fn of(&self, slot: Slot) -> &[u32] {
        &self.blocks[self.row(slot)].as_flattened()[..self.width]
    }

    /// The clock of `slot`, to be changed.
    #[inline]
    pub fn of_mut(&mut self, slot: Slot) -> &mut [u32] {
        let row = self.row(slot);
        &mut self.blocks[row].as_flattened_mut()[..self.width]
    }

    #[inline]
    fn row(&self, slot: Slot) -> Range<usize> {
        let start = slot as usize * self.stride;
        start..start + self.stride
    }

    /// How many blocks a clock takes.
    pub(crate) fn stride(&self) -> usize {
        self.stride
    }

    /// The blocks of the clock of `slot`.
    #[inline]
    pub(crate) fn blocks(&self, slot: Slot) -> &[[u32; LANES]] {
        &self.blocks[self.row(slot)]
    }

    /// The clock of `slot`, followed by zeros, if each clock fits into one block.
    #[inline]
    pub(crate) fn block(&self, slot: Slot) -> &[u32; LANES] {
        &self.blocks[slot as usize]
    }

    /// How many threads a clock counts.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many clocks there are.
    pub fn len(&self) -> usize {
        match self.stride {
            0 => 0,
            stride => self.blocks.len() / stride,
        }
    }

    /// Whether there is no clock.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Adds the clock of nothing.
    #[inline]
    pub fn push_zero(&mut self) {
        for _ in 0..self.stride {
            self.blocks.push([0; LANES]);
        }
    }

    /// Adds a copy of the clock of `slot`.
    #[inline]
    pub fn push_copy(&mut self, slot: Slot) {
        for block in self.row(slot) {
            let copy = self.blocks[block];
            self.blocks.push(copy);
        }
    }

    /// Adds `clock`, which may be from a time when fewer threads were known.
    pub fn push(&mut self, clock: &[u32]) {
        debug_assert!(clock.len() <= self.width);
        let slot = self.len() as Slot;
        self.push_zero();
        self.of_mut(slot)[..clock.len()].copy_from_slice(clock);
    }

    /// Counts in `into` what `from` counts as well.
    #[inline]
    pub fn join(&mut self, into: Slot, from: Slot) {
        for (into, from) in self.row(into).zip(self.row(from)) {
            let from = self.blocks[from];
            let into = &mut self.blocks[into];
            for lane in 0..LANES {
                // Signed numbers are compared faster, and no count is that large.
                into[lane] = (into[lane] as i32).max(from[lane] as i32) as u32;
            }
        }
    }

    /// Counts in `into` what `clock` counts as well.
    pub fn join_with(&mut self, into: Slot, clock: &[u32]) {
        join(self.of_mut(into), clock);
    }

    /// Makes `clock` the clock of `into`.
    pub fn set(&mut self, into: Slot, clock: &[u32]) {
        self.of_mut(into).copy_from_slice(clock);
    }

    /// Makes the clock of `into` that of `from`.
    #[inline]
    pub fn copy(&mut self, into: Slot, from: Slot) {
        for (into, from) in self.row(into).zip(self.row(from)) {
            self.blocks[into] = self.blocks[from];
        }
    }

    /// Keeps the first `slots` clocks.
    pub fn truncate(&mut self, slots: Slot) {
        self.blocks.truncate(slots as usize * self.stride);
    }

    /// Makes room for `width` threads.
    pub fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let stride = width.div_ceil(LANES);
        if stride > self.stride && !self.blocks.is_empty() {
            let old = std::mem::take(&mut self.blocks);
            for clock in old.chunks(self.stride) {
                self.blocks.extend_from_slice(clock);
                let missing = stride - self.stride;
                self.blocks.extend(std::iter::repeat_n([0; LANES], missing));
            }
        }
        self.width = width;
        self.stride = stride;
    }
}
