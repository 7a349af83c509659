//! The lives of locations on stacks: the same bytes are one variable after the other.

use selvedge_core::Location;

use super::Locations;
use super::entry::Entry;

impl Locations {
    /// The location that `first` and its bytes are at present.
    #[cold]
    pub(super) fn present_life(&self, first: u32) -> Location {
        let mut life = first as usize;
        while self.entries[life].ended == self.present {
            life = self.entries[life].next_life as usize - 1;
        }
        Location(life as u32)
    }

    /// Ends the life of a location in execution `run`: its bytes are another one from now on.
    fn end_life(&mut self, location: Location, run: u32) {
        self.changes(location);
        let entry = &mut self.entries[location.index()];
        entry.ended = run;
        for (cell, mask) in entry.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            let cell = unsafe { &mut *cell };
            cell.visible &= !mask;
            cell.written &= !mask;
        }
        if entry.next_life == 0 {
            let young = Entry {
                run: 0,
                ended: 0,
                next: 0,
                overlapped: 0,
                later_life: true,
                ..*entry
            };
            let number = self.entries.len() as u32 + 1;
            self.entries[location.index()].next_life = number;
            self.add(young);
        }
    }

    /// Ends the life of all locations in `range` in execution `run`. The lowest of the others that
    /// lie in the same stack is returned.
    pub(crate) fn end_lives(&mut self, range: std::ops::Range<usize>, run: u32) -> Option<usize> {
        let mut lowest = None;
        for n in 0..self.touched.len() {
            let location = self.touched[n];
            let entry = self.entry(location);
            // A merged location has no lives: every access to its bytes is an event on it.
            let (address, ended) = (entry.address, entry.ended == run || entry.merged);
            if range.contains(&address) && !ended {
                self.end_life(location, run);
            } else if address >= range.end && !ended {
                lowest = lowest.min(Some(address)).or(Some(address));
            }
        }
        lowest
    }
}
