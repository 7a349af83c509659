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
    /// What the runtime knows its memory to hold.
    last: Value,
    /// The execution in which its frame was left: it means another variable from then on.
    ended: u32,
    /// One more than the number of the location that it is after that.
    next_life: u32,
    /// It is what another one is after that.
    later_life: bool,
    /// The execution in which another location was found to overlap it.
    overlapped: u32,
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
    /// The number of the present execution.
    present: u32,
    /// What was touched in it.
    touched: Vec<Location>,
    /// What steps that can be taken back have changed, if one is under way.
    log: Vec<(Location, Entry)>,
    logging: bool,
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

    /// Whether changes are to be logged from now on.
    pub(crate) fn set_logging(&mut self, logging: bool) {
        self.logging = logging;
    }

    /// The present state, for [`take_back`](Locations::take_back).
    pub(crate) fn mark(&self) -> (usize, usize) {
        (self.log.len(), self.touched.len())
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

    /// The location of `width` bytes of memory at `address`, if it has a number and a cell.
    pub(crate) fn find(&self, shadow: &Shadow, address: usize, width: u8) -> Option<Location> {
        let cell = cell_of(shadow, address, Kind::Memory)?;
        self.touched(cell, self.present).find(|&location| {
            let entry = self.entry(location);
            (entry.address, entry.width, entry.kind) == (address, width, Kind::Memory)
        })
    }

    /// The location that `first` and its bytes are at present.
    #[cold]
    fn present_life(&self, first: u32) -> Location {
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
            let (address, ended) = (entry.address, entry.ended == run);
            if range.contains(&address) && !ended {
                self.end_life(location, run);
            } else if address >= range.end && !ended {
                lowest = lowest.min(Some(address)).or(Some(address));
            }
        }
        lowest
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

    /// Notes that an operation on `location` is being performed.
    #[inline(always)]
    pub(crate) fn perform(&mut self, location: Location, run: u32, writes: bool) -> &Entry {
        if self.entries[location.index()].run != run {
            self.begin_location(location, run);
        }
        let entry = &mut self.entries[location.index()];
        if writes {
            for (cell, mask) in entry.cells() {
                // SAFETY: cells are mapped while the program is loaded.
                unsafe { (*cell).written |= mask };
            }
        }
        entry
    }

    /// The first visible operation of execution `run` on a location.
    fn begin_location(&mut self, location: Location, run: u32) {
        self.changes(location);
        let entry = &mut self.entries[location.index()];
        let overlaps = entry.begin(run);
        self.touched.push(location);
        if overlaps {
            for other in self.overlapping(location) {
                self.changes(other);
                self.entries[other.index()].overlapped = run;
                self.entries[location.index()].overlapped = run;
            }
        }
    }

    /// The locations that begin in the word of `cell` and were touched in execution `run`.
    pub(crate) fn touched(&self, cell: *mut Cell, run: u32) -> impl Iterator<Item = Location> {
        // SAFETY: cells are mapped while the program is loaded.
        let mut next = unsafe { (*cell).location };
        std::iter::from_fn(move || {
            while next != 0 {
                let number = next - 1;
                next = self.entries[number as usize].next;
                let present = self.present_life(number);
                if self.entry(present).run == run {
                    return Some(present);
                }
            }
            None
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

    /// What the runtime has put into the memory of a location.
    #[inline(always)]
    pub(crate) fn holds(&mut self, location: Location, value: Value) {
        self.changes(location);
        self.entries[location.index()].last = value;
    }

    /// What the memory of a location that was touched in execution `run` is known to hold.
    pub(crate) fn known(&self, location: Location, run: u32) -> Option<Value> {
        let entry = self.entry(location);
        (entry.run == run).then_some(entry.last)
    }

    /// Whether a location was touched in execution `run`, and none that overlaps it.
    pub(crate) fn is_alone(&self, location: Location, run: u32) -> bool {
        let entry = self.entry(location);
        entry.run == run && entry.overlapped != run
    }

    /// What was touched in the present execution and lives.
    pub(crate) fn all_touched(&self) -> impl Iterator<Item = &Entry> {
        let entries = self.touched.iter().map(|&at| self.entry(at));
        entries.filter(|entry| entry.run == self.present && entry.ended != self.present)
    }

    /// The locations that were touched in the present execution and share bytes with `location`.
    pub(crate) fn overlapping(&self, location: Location) -> Vec<Location> {
        let entry = self.entry(location);
        let (start, end) = (entry.address, entry.address + usize::from(entry.width));
        let shares = |at: &Location| {
            let other = self.entry(*at);
            let lives = other.run == self.present && other.ended != self.present;
            lives
                && *at != location
                && other.address < end
                && start < other.address + usize::from(other.width)
        };
        self.touched.iter().copied().filter(shares).collect()
    }

    /// Takes it for certain that no plain access ever touches `location`. True if that is new.
    pub(crate) fn rely_on(&mut self, location: Location) -> bool {
        let entry = &mut self.entries[location.index()];
        entry.mark_relied_on();
        !std::mem::replace(&mut entry.relied_on, true)
    }

    /// Puts the numbers back into cells that were cleared.
    pub(crate) fn relink(&mut self) {
        for (index, entry) in self.entries.iter().enumerate() {
            if entry.relied_on {
                entry.mark_relied_on();
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
    /// A location that was not touched yet.
    fn new((address, width, kind): (usize, u8, Kind), cells: [(*mut Cell, u8); 3]) -> Entry {
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
    /// Tells whether others have some of its bytes.
    fn begin(&mut self, run: u32) -> bool {
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
