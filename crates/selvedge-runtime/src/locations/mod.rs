//! Numbers for the memory locations and objects that visible operations touch.

mod entry;
mod lives;
mod merged;
mod numbers;
mod objects;

use std::collections::HashMap;

use selvedge_core::{Location, Value};

use crate::agreed::Agreed;
use crate::protection::Protection;
use crate::shadow::Cell;
pub(crate) use entry::{Entry, Kind};
pub use merged::Extent;
pub(crate) use merged::Part;
use numbers::cell_of;

/// All locations of the search.
#[derive(Default)]
pub(crate) struct Locations {
    entries: Vec<Entry>,
    /// The locations that have no cell.
    elsewhere: HashMap<(usize, u8, Kind), u32>,
    /// The locations whose contents are not kept in memory, by address.
    objects: Vec<Location>,
    /// The locations that are accessed in parts.
    merged: Vec<Location>,
    /// The numbers that other processes have to agree to.
    agreed: Option<Agreed>,
    /// The number of the present execution.
    present: u32,
    /// The locations that were touched in it.
    touched: Vec<Location>,
    /// The changes of steps that can be taken back, if one is under way.
    log: Vec<(Location, Entry)>,
    logging: bool,
}

impl Locations {
    /// The knowledge about a location.
    #[inline(always)]
    pub(crate) fn entry(&self, location: Location) -> &Entry {
        &self.entries[location.index()]
    }

    /// Its value before its first visible operation in execution `run`: the present one, if there was none.
    pub(crate) fn initial(&self, location: Location, run: u32) -> Value {
        let entry = self.entry(location);
        if entry.run == run {
            entry.initial
        } else {
            entry.now()
        }
    }

    /// Notes that an operation on `location` is being performed.
    #[inline(always)]
    pub(crate) fn perform(&mut self, location: Location, run: u32, writes: bool) {
        let whole = self.whole(location);
        if self.entries[whole.index()].run != run {
            self.begin_location(whole, run);
        }
        if writes {
            for (cell, mask) in self.entries[location.index()].cells() {
                // SAFETY: cells are mapped while the program is loaded.
                unsafe { (*cell).written |= mask };
            }
        }
    }

    /// The first visible operation of execution `run` on a location.
    fn begin_location(&mut self, location: Location, run: u32) {
        self.changes(location);
        let entry = &mut self.entries[location.index()];
        let overlaps = entry.begin(run);
        self.touched.push(location);
        if overlaps && !Protection::Sizes.is_off() {
            for other in self.overlapping(location) {
                self.changes(other);
                self.entries[other.index()].overlapped = run;
                self.entries[location.index()].overlapped = run;
            }
        }
    }

    /// The locations that begin in the word of `cell`.
    fn in_cell(&self, cell: *mut Cell) -> impl Iterator<Item = Location> {
        // SAFETY: cells are mapped while the program is loaded.
        let mut next = unsafe { (*cell).location };
        std::iter::from_fn(move || {
            let number = next.checked_sub(1)?;
            next = self.entries[number as usize].next;
            Some(self.present_life(number))
        })
    }

    /// The locations that begin in the word of `cell` and were touched in execution `run`, and
    /// merged ones.
    pub(crate) fn touched(&self, cell: *mut Cell, run: u32) -> impl Iterator<Item = Location> {
        self.in_cell(cell).filter(move |&location| {
            let entry = self.entry(location);
            entry.run == run || entry.merged
        })
    }

    /// Forgets in which execution each location was touched last.
    pub(crate) fn forget_runs(&mut self) {
        for entry in &mut self.entries {
            (entry.run, entry.ended, entry.overlapped) = (0, 0, 0);
        }
    }

    /// Execution `run` begins.
    pub(crate) fn begin(&mut self, run: u32) {
        self.present = run;
        self.touched.clear();
        self.log.clear();
    }

    /// The locations that were touched in the present execution and live.
    pub(crate) fn all_touched(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.touched.iter().map(|&at| self.entry(at));
        entries.filter(|entry| entry.run == self.present && entry.ended != self.present)
    }

    /// The locations that were touched in the present execution and share bytes with `location`.
    pub(crate) fn overlapping(&self, location: Location) -> Vec<Location> {
        let entry = self.entry(location);
        let (start, end) = (entry.address, entry.end());
        let shares = |at: &Location| {
            let other = self.entry(*at);
            let lives = other.run == self.present && other.ended != self.present;
            lives && *at != location && other.address < end && start < other.end()
        };
        self.touched.iter().copied().filter(shares).collect()
    }

    /// Takes it for certain that no plain access ever touches `location`. True if that is new.
    pub(crate) fn rely_on(&mut self, location: Location) -> bool {
        let entry = &mut self.entries[location.index()];
        entry.mark_relied_on();
        !std::mem::replace(&mut entry.relied_on, true)
    }

    /// Whether changes are to be logged from now on.
    pub(crate) fn set_logging(&mut self, logging: bool) {
        self.logging = logging;
    }

    /// The present state, for [`take_back`](Locations::take_back).
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.log.len(), self.touched.len())
    }

    /// No mark of before is used any more.
    pub(crate) fn forget_log(&mut self) {
        self.log.clear();
    }

    /// A location is about to change.
    #[inline(always)]
    fn changes(&mut self, location: Location) {
        if self.logging {
            self.log.push((location, self.entries[location.index()]));
        }
    }

    /// Makes locations what they were at a mark. What is known for the whole search stays.
    pub(crate) fn take_back(&mut self, (log, touched): (usize, usize)) {
        for (location, before) in self.log.drain(log..).rev() {
            let entry = &mut self.entries[location.index()];
            (entry.run, entry.initial, entry.last) = (before.run, before.initial, before.last);
            (entry.ended, entry.overlapped) = (before.ended, before.overlapped);
        }
        self.touched.truncate(touched);
    }

    /// The cells of what was touched in `range` in this execution.
    pub(crate) fn cells_in(&self, range: std::ops::Range<usize>) -> Vec<*mut Cell> {
        if !self.logging {
            return Vec::new();
        }
        let touched = self.all_touched();
        let inside = touched.filter(|entry| range.contains(&entry.address));
        inside
            .flat_map(Entry::cells)
            .map(|(cell, _)| cell)
            .collect()
    }

    /// The locations of this execution in words.
    pub(crate) fn words(&self) -> String {
        let state = |at: &Location| {
            let entry = self.entry(*at);
            (
                at.0,
                entry.run,
                entry.initial,
                entry.last,
                entry.ended,
                entry.overlapped,
            )
        };
        format!("{:?}", self.touched.iter().map(state).collect::<Vec<_>>())
    }
}
