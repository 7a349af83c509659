//! Giving numbers to locations, the same ones in all processes that search together.

use std::io;
use std::ptr;

use selvedge_core::Location;

use super::Locations;
use super::entry::{Entry, Kind};
use crate::agreed::Agreed;
use crate::shadow::{self, Cell, Shadow};

impl Locations {
    /// The number of a location.
    #[inline(always)]
    pub(crate) fn number(
        &mut self,
        shadow: &Shadow,
        address: usize,
        width: u8,
        kind: Kind,
    ) -> Location {
        let Some(cell) = cell_of(shadow, address, kind) else {
            return self.number_elsewhere(shadow, (address, width, kind));
        };
        // SAFETY: cells are mapped while the program is loaded; this one is not in use elsewhere.
        let mut next = unsafe { (*cell).location };
        while next != 0 {
            let entry = &self.entries[next as usize - 1];
            if entry.address == address && entry.width == width && entry.kind == kind {
                return match entry.next_life {
                    0 => Location(next - 1),
                    _ => self.present_life(next - 1),
                };
            }
            next = entry.next;
        }
        if self.agreed.is_some() {
            return self.agree_on(shadow, (address, width, kind));
        }
        self.add_with_cell(shadow, (address, width, kind), cell)
    }

    fn number_elsewhere(&mut self, shadow: &Shadow, location: (usize, u8, Kind)) -> Location {
        if let Some(&known) = self.elsewhere.get(&location) {
            return Location(known);
        }
        match self.agreed.is_some() {
            true => self.agree_on(shadow, location),
            false => self.add_elsewhere(location),
        }
    }

    /// Adds a location that begins in the word of `cell`.
    fn add_with_cell(
        &mut self,
        shadow: &Shadow,
        (address, width, kind): (usize, u8, Kind),
        cell: *mut Cell,
    ) -> Location {
        // SAFETY: as above.
        let head = unsafe { &mut (*cell).location };
        let mut cells = [(ptr::null_mut(), 0); 3];
        for (into, (word, mask)) in cells
            .iter_mut()
            .zip(shadow::words(address, usize::from(width)))
        {
            *into = (shadow.cell(word).unwrap_or(ptr::null_mut()), mask);
        }
        self.add(Entry {
            next: *head,
            ..Entry::new((address, width, kind), cells)
        });
        *head = self.entries.len() as u32;
        Location(*head - 1)
    }

    fn add_elsewhere(&mut self, (address, width, kind): (usize, u8, Kind)) -> Location {
        let cells = [(ptr::null_mut(), 0); 3];
        self.add(Entry::new((address, width, kind), cells));
        let number = self.entries.len() as u32 - 1;
        self.elsewhere.insert((address, width, kind), number);
        Location(number)
    }

    /// Gives the next number to a location.
    fn add_next(&mut self, shadow: &Shadow, location: (usize, u8, Kind)) -> Location {
        match cell_of(shadow, location.0, location.2) {
            Some(cell) => self.add_with_cell(shadow, location, cell),
            None => self.add_elsewhere(location),
        }
    }

    pub(super) fn add(&mut self, entry: Entry) {
        if entry.kind != Kind::Memory {
            let key = (entry.address, entry.kind as u8);
            let key_of = |location: &Location| {
                let entry = &self.entries[location.index()];
                (entry.address, entry.kind as u8)
            };
            let place = self.objects.partition_point(|at| key_of(at) <= key);
            let number = Location(self.entries.len() as u32);
            self.objects.insert(place, number);
        }
        let whole = self.whole_around(&entry);
        self.entries.push(Entry { whole, ..entry });
    }

    /// From now on, numbers are the same in all processes that are made of this one.
    pub(crate) fn agree(&mut self) -> io::Result<()> {
        let agreed = Agreed::new()?;
        for (number, entry) in self.entries.iter().enumerate() {
            agreed.append(number, entry.words());
        }
        self.agreed = Some(agreed);
        Ok(())
    }

    /// Takes up the numbers that other processes have given.
    pub(crate) fn catch_up(&mut self, shadow: &Shadow) {
        let Some(agreed) = &self.agreed else { return };
        for [address, other] in agreed.since(self.entries.len()) {
            let (width, kind) = ((other >> 8) as u8, Kind::of(other as u8));
            self.add_next(shadow, (address as usize, width, kind));
        }
    }

    /// Gives a number to a location that all processes agree to.
    #[cold]
    fn agree_on(&mut self, shadow: &Shadow, location: (usize, u8, Kind)) -> Location {
        loop {
            let next = self.entries.len();
            self.catch_up(shadow);
            let (address, width, kind) = location;
            let same = |entry: &Entry| (entry.address, entry.width, entry.kind) == location;
            if let Some(place) = self.entries[next..].iter().position(same) {
                return Location((next + place) as u32);
            }
            let agreed = self.agreed.as_ref().expect("others have to agree");
            if agreed.append(self.entries.len(), words(address, width, kind)) {
                return self.add_next(shadow, location);
            }
        }
    }

    /// Puts the numbers back into cells that were cleared.
    pub(crate) fn relink(&mut self) {
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.relied_on {
                entry.mark_relied_on();
            }
            if entry.merged {
                entry.mark_merged();
            }
            let (cell, _) = entry.cells[0];
            if !cell.is_null() && !entry.later_life {
                // SAFETY: cells are mapped while the program is loaded.
                unsafe { (*cell).location = index as u32 + 1 };
            }
        }
    }
}

/// The cell of the word that a location begins in, if it has one.
#[inline(always)]
pub(super) fn cell_of(shadow: &Shadow, address: usize, kind: Kind) -> Option<*mut Cell> {
    shadow.cell(address).filter(|_| kind != Kind::Queue)
}

/// A location in two words.
pub(super) fn words(address: usize, width: u8, kind: Kind) -> [u64; 2] {
    [address as u64, u64::from(width) << 8 | kind as u64]
}
