//! Numbers for the memory locations and objects that visible operations touch.

use std::collections::HashMap;
use std::io;
use std::ptr;

use selvedge_core::{Location, Value};

use crate::agreed::Agreed;
use crate::memory;
use crate::shadow::{self, Cell, RELIED_ON, Shadow};

/// What a location is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Plain bytes.
    Memory,
    /// A synchronisation object: its abstract state is not kept in memory.
    Object,
    /// The queue of those who wait for a word to change: kept nowhere, and no access to that word.
    Queue,
}

/// A location and what is known of it in the present execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) address: usize,
    pub(crate) width: u8,
    pub(crate) kind: Kind,
    /// The execution in which it was last touched.
    run: u32,
    /// What it held before that.
    initial: Value,
    /// The cells of the words it lies in, each with the bytes it covers there.
    cells: [(*mut Cell, u8); 3],
    /// One more than the number of another location in the same word.
    next: u32,
    /// It was taken for certain that no plain access ever touches it.
    relied_on: bool,
}

/// All locations of the search.
#[derive(Default)]
pub(crate) struct Locations {
    entries: Vec<Entry>,
    /// Those that have no cell.
    elsewhere: HashMap<(usize, u8, Kind), u32>,
    /// Those whose contents are not kept in memory, by address.
    objects: Vec<Location>,
    /// What other processes have to agree to.
    agreed: Option<Agreed>,
}

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
                return Location(next - 1);
            }
            next = entry.next;
        }
        if self.agreed.is_some() {
            return self.agree_on(shadow, (address, width, kind));
        }
        self.add_with_cell(shadow, (address, width, kind), cell)
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
            address,
            width,
            kind,
            run: 0,
            initial: 0,
            cells,
            next: *head,
            relied_on: false,
        });
        *head = self.entries.len() as u32;
        Location(*head - 1)
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

    fn add_elsewhere(&mut self, (address, width, kind): (usize, u8, Kind)) -> Location {
        let cells = [(ptr::null_mut(), 0); 3];
        self.add(Entry {
            address,
            width,
            kind,
            run: 0,
            initial: 0,
            cells,
            next: 0,
            relied_on: false,
        });
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

    fn add(&mut self, entry: Entry) {
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
        self.entries.push(entry);
    }

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

    /// The same for the objects in `size` bytes at `address`, which are written to. Those who wait
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

    /// What is known of a location.
    #[inline(always)]
    pub(crate) fn entry(&self, location: Location) -> &Entry {
        &self.entries[location.index()]
    }

    /// What it held before its first visible operation in execution `run`: now, if there was none.
    pub(crate) fn initial(&self, location: Location, run: u32) -> Value {
        let entry = self.entry(location);
        if entry.run == run {
            entry.initial
        } else {
            entry.now()
        }
    }

    /// Notes that an operation on `location` is being performed. `Err` if it overlaps a location of
    /// another extent that was touched in this execution.
    #[inline(always)]
    pub(crate) fn perform(
        &mut self,
        location: Location,
        run: u32,
        writes: bool,
    ) -> Result<&Entry, ()> {
        let entry = &mut self.entries[location.index()];
        if entry.run != run {
            entry.begin(run)?;
        }
        if writes {
            for (cell, mask) in entry.cells() {
                // SAFETY: cells are mapped while the program is loaded.
                unsafe { (*cell).written |= mask };
            }
        }
        Ok(entry)
    }

    /// The locations that begin in the word of `cell` and were touched in execution `run`.
    pub(crate) fn touched(&self, cell: *mut Cell, run: u32) -> impl Iterator<Item = Location> {
        // SAFETY: cells are mapped while the program is loaded.
        let mut next = unsafe { (*cell).location };
        std::iter::from_fn(move || {
            while next != 0 {
                let number = next - 1;
                let entry = &self.entries[number as usize];
                next = entry.next;
                if entry.run == run {
                    return Some(Location(number));
                }
            }
            None
        })
    }

    /// Forgets in which execution each location was touched last.
    pub(crate) fn forget_runs(&mut self) {
        for entry in &mut self.entries {
            entry.run = 0;
        }
    }

    /// Takes it for certain that no plain access ever touches `location`.
    pub(crate) fn rely_on(&mut self, location: Location) {
        let entry = &mut self.entries[location.index()];
        entry.relied_on = true;
        entry.mark_relied_on();
    }

    /// Puts the numbers back into cells that were cleared.
    pub(crate) fn relink(&mut self) {
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.relied_on {
                entry.mark_relied_on();
            }
            let (cell, _) = entry.cells[0];
            if !cell.is_null() {
                // SAFETY: cells are mapped while the program is loaded.
                unsafe { (*cell).location = index as u32 + 1 };
            }
        }
    }
}

/// The cell of the word that a location begins in, if it has one.
#[inline(always)]
fn cell_of(shadow: &Shadow, address: usize, kind: Kind) -> Option<*mut Cell> {
    shadow.cell(address).filter(|_| kind != Kind::Queue)
}

/// A location in two words.
fn words(address: usize, width: u8, kind: Kind) -> [u64; 2] {
    [address as u64, u64::from(width) << 8 | kind as u64]
}

impl Kind {
    /// The inverse of a cast.
    fn of(number: u8) -> Kind {
        [Kind::Memory, Kind::Object, Kind::Queue][usize::from(number)]
    }
}

impl Entry {
    fn words(&self) -> [u64; 2] {
        words(self.address, self.width, self.kind)
    }

    /// The cells it has, with the bytes it covers in each.
    #[inline(always)]
    pub(crate) fn cells(&self) -> impl Iterator<Item = (*mut Cell, u8)> + use<> {
        self.cells.into_iter().filter(|(cell, _)| !cell.is_null())
    }

    fn mark_relied_on(&self) {
        for (cell, mask) in self.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            unsafe { (*cell).always |= shadow::halves(mask) << RELIED_ON };
        }
    }

    /// What an object holds that was used in this execution.
    pub(crate) fn held(&self) -> Value {
        self.initial
    }

    /// The bytes it covers of the word at `word`.
    pub(crate) fn mask_in(&self, word: usize) -> u8 {
        shadow::words(self.address, usize::from(self.width))
            .find(|&(at, _)| at == word)
            .map_or(0, |(_, mask)| mask)
    }

    /// What it holds before any visible operation.
    fn now(&self) -> Value {
        match self.kind {
            Kind::Queue => 0,
            Kind::Memory | Kind::Object => memory::read(self.address, self.width),
        }
    }

    /// The first visible operation of an execution on it.
    fn begin(&mut self, run: u32) -> Result<(), ()> {
        for (cell, mask) in self.cells() {
            // SAFETY: cells are mapped while the program is loaded.
            let cell = unsafe { &mut *cell };
            cell.refresh(run);
            if cell.visible & mask != 0 {
                return Err(());
            }
        }
        for (cell, mask) in self.cells() {
            // SAFETY: as above.
            unsafe { (*cell).visible |= mask };
        }
        self.run = run;
        self.initial = self.now();
        Ok(())
    }
}
