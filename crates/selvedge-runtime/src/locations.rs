//! Numbers for the memory locations and objects that visible operations touch.

use std::collections::HashMap;

use selvedge_core::{Location, Value};

use crate::memory;

/// What a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Plain bytes.
    Memory,
    /// A synchronisation object: its abstract state is not kept in memory.
    Object,
}

/// A location and what is known of it in the present execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) address: usize,
    pub(crate) width: u8,
    pub(crate) kind: Kind,
    /// The execution in which it was last touched.
    pub(crate) run: u32,
    /// What it held before that.
    pub(crate) initial: Value,
}

/// All locations of the search.
#[derive(Default)]
pub(crate) struct Locations {
    entries: Vec<Entry>,
    numbers: HashMap<(usize, u8, Kind), u32>,
}

impl Locations {
    /// The number of a location.
    pub(crate) fn number(&mut self, address: usize, width: u8, kind: Kind) -> Location {
        let entries = &mut self.entries;
        let number = *self
            .numbers
            .entry((address, width, kind))
            .or_insert_with(|| {
                entries.push(Entry {
                    address,
                    width,
                    kind,
                    run: 0,
                    initial: 0,
                });
                entries.len() as u32 - 1
            });
        Location(number)
    }

    /// What is known of a location.
    pub(crate) fn entry(&self, location: Location) -> &Entry {
        &self.entries[location.index()]
    }

    /// What is known of a location.
    pub(crate) fn entry_mut(&mut self, location: Location) -> &mut Entry {
        &mut self.entries[location.index()]
    }

    /// What it held before its first visible operation in execution `run`: now, if there was none.
    pub(crate) fn initial(&self, location: Location, run: u32) -> Value {
        let entry = self.entry(location);
        if entry.run == run {
            entry.initial
        } else {
            memory::read(entry.address, entry.width)
        }
    }

    /// Notes that an operation on `location` is being performed.
    pub(crate) fn perform(&mut self, location: Location, run: u32) {
        let entry = &mut self.entries[location.index()];
        if entry.run != run {
            entry.run = run;
            entry.initial = memory::read(entry.address, entry.width);
        }
    }
}
