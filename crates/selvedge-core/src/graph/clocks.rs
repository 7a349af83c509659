//! Vector clocks of all events in one flat table.

use super::Slot;

/// Counts in `into` what `from` counts as well.
#[inline]
pub fn join(into: &mut [u32], from: &[u32]) {
    for (entry, &counted) in into.iter_mut().zip(from) {
        *entry = (*entry).max(counted);
    }
}

/// One clock for each slot: of each thread, how many of its events are counted.
#[derive(Clone, Debug, Default)]
pub struct Clocks {
    width: usize,
    entries: Vec<u32>,
}

impl Clocks {
    /// The clock of `slot`.
    pub fn of(&self, slot: Slot) -> &[u32] {
        let start = slot as usize * self.width;
        &self.entries[start..start + self.width]
    }

    /// The clock of `slot`, to be changed.
    pub fn of_mut(&mut self, slot: Slot) -> &mut [u32] {
        let start = slot as usize * self.width;
        &mut self.entries[start..start + self.width]
    }

    /// How many threads a clock counts.
    pub fn width(&self) -> usize {
        self.width
    }

    /// How many clocks there are.
    pub fn len(&self) -> usize {
        match self.width {
            0 => 0,
            width => self.entries.len() / width,
        }
    }

    /// Whether there is no clock.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds the clock of nothing.
    pub fn push_zero(&mut self) {
        self.entries.resize(self.entries.len() + self.width, 0);
    }

    /// Adds a copy of the clock of `slot`.
    pub fn push_copy(&mut self, slot: Slot) {
        let start = slot as usize * self.width;
        self.entries.extend_from_within(start..start + self.width);
    }

    /// Adds `clock`, which may be from a time when fewer threads were known.
    pub fn push(&mut self, clock: &[u32]) {
        debug_assert!(clock.len() <= self.width);
        self.entries.extend_from_slice(clock);
        let missing = self.width - clock.len();
        self.entries.resize(self.entries.len() + missing, 0);
    }

    /// Counts in `into` what `from` counts as well.
    pub fn join(&mut self, into: Slot, from: Slot) {
        let width = self.width;
        let (into, from) = (into as usize * width, from as usize * width);
        // Two slices that do not overlap, so that the bounds are looked at once.
        let (into, from) = match into < from {
            true => {
                let (low, high) = self.entries.split_at_mut(from);
                (&mut low[into..into + width], &high[..width])
            }
            false if into > from => {
                let (low, high) = self.entries.split_at_mut(into);
                (&mut high[..width], &low[from..from + width])
            }
            false => return,
        };
        join(into, from);
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
    pub fn copy(&mut self, into: Slot, from: Slot) {
        let from = from as usize * self.width;
        let into = into as usize * self.width;
        self.entries.copy_within(from..from + self.width, into);
    }

    /// Keeps the first `slots` clocks.
    pub fn truncate(&mut self, slots: Slot) {
        self.entries.truncate(slots as usize * self.width);
    }

    /// Makes room for `width` threads.
    pub fn widen(&mut self, width: usize) {
        if width <= self.width {
            return;
        }
        let mut entries = Vec::with_capacity(self.len() * width);
        if self.width > 0 {
            for clock in self.entries.chunks(self.width) {
                entries.extend_from_slice(clock);
                entries.resize(entries.len() + width - self.width, 0);
            }
        }
        self.width = width;
        self.entries = entries;
    }
}
