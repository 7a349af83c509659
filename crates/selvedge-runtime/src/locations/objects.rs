//! Locations whose contents are not kept in memory: synchronisation objects and queues.

use selvedge_core::{Location, Value};

use super::Locations;
use super::entry::{Entry, Kind};

impl Locations {
    /// The objects, by address, that hold something else in execution `run` than before their first
    /// use.
    pub(crate) fn objects(&self, run: u32) -> impl Iterator<Item = (Location, &Entry)> {
        let all = self.objects.iter().map(|&at| (at, self.entry(at)));
        all.filter(move |(_, entry)| entry.run == run && entry.initial != entry.now())
    }

    /// Makes an object hold `value` in execution `run`.
    pub(crate) fn set_object(&mut self, location: Location, value: Value, run: u32) {
        let entry = &mut self.entries[location.index()];
        (entry.run, entry.initial) = (run, value);
    }

    /// Forgets what objects hold: they are as memory says, and queues are empty.
    pub(crate) fn forget_all_objects(&mut self) {
        for &location in &self.objects {
            self.entries[location.index()].run = 0;
        }
    }

    /// The same for the objects in `size` bytes at `address`, which are written to. Threads that wait
    /// for such a word go on waiting.
    pub(crate) fn forget_objects(&mut self, address: usize, size: usize) {
        let before = |location: &Location| self.entries[location.index()].address < address;
        let first = self.objects.partition_point(before);
        for &location in &self.objects[first..] {
            let entry = &mut self.entries[location.index()];
            if entry.address >= address + size {
                break;
            }
            if entry.kind != Kind::Queue {
                entry.run = 0;
            }
        }
    }
}
