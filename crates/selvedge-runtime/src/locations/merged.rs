//! Merged locations: bytes that several threads access with different widths, and nothing orders
//! these accesses.
//!
//! Under sequential consistency such bytes are one location. Every access reads the location or
//! updates a part of it, so that no order between accesses of different widths is lost. Plain
//! accesses to these bytes are always events: otherwise the initial value of the location would
//! depend on the interleaving.

use selvedge_core::op::Rmw;
use selvedge_core::{Function, Location, Op, Outcome, Value, Width};
use serde::{Deserialize, Serialize};

use super::entry::{Entry, Kind};
use super::{Locations, cell_of};
use crate::memory;
use crate::shadow::Shadow;

/// The most bytes that a location can have.
const WIDEST: usize = 16;

/// Where a merged location lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extent {
    /// Its address; for globals, counted from the start of the program's image.
    pub start: u64,
    /// Whether it is a global.
    pub global: bool,
    /// How many bytes it has.
    pub width: u8,
}

/// The part of a merged location that an access touches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    whole: Location,
    offset: u8,
    width: Width,
}

impl Part {
    fn shift(self) -> u32 {
        8 * u32::from(self.offset)
    }

    /// This part of `value`.
    fn extract(self, value: Value) -> Value {
        self.width.truncate(value >> self.shift())
    }

    /// `value` with `part` in its place.
    fn insert(self, value: Value, part: Value) -> Value {
        let mask = self.width.truncate(Value::MAX) << self.shift();
        (value & !mask) | part << self.shift()
    }

    /// `op`, an operation on this part, as an operation on the whole.
    pub(crate) fn widen(self, op: Op) -> Op {
        let Part {
            whole: at,
            offset,
            width,
        } = self;
        let update = |rmw, order, failure| Op::Update {
            at,
            function: Function::Memory { offset, width, rmw },
            order,
            failure,
        };
        match op {
            Op::Load { order, .. } => Op::Load { at, order },
            Op::Store { value, order, .. } => update(Rmw::Replace(value), order, order),
            Op::Update {
                function: Function::Memory { rmw, .. },
                order,
                failure,
                ..
            } => update(rmw, order, failure),
            op => op,
        }
    }

    /// The meaning of the widened operation's outcome for `op` itself.
    pub(crate) fn narrow(self, op: &Op, outcome: Outcome) -> Outcome {
        match op {
            Op::Store { .. } => Outcome::default(),
            _ => Outcome {
                read: self.extract(outcome.read),
                wrote: outcome.wrote.map(|value| self.extract(value)),
            },
        }
    }
}

impl Locations {
    /// Makes `width` bytes at `address` a merged location.
    pub(crate) fn merge(&mut self, shadow: &Shadow, address: usize, width: u8) {
        let whole = self.number(shadow, address, width, Kind::Memory);
        self.entries[whole.index()].merged = true;
        self.entries[whole.index()].mark_merged();
        self.merged.push(whole);
        for index in 0..self.entries.len() {
            self.entries[index].whole = self.whole_around(&self.entries[index]);
        }
    }

    /// One more than the number of the merged location that contains a new location.
    pub(super) fn whole_around(&self, new: &Entry) -> u32 {
        let around = self.merged.iter().find(|&&whole| {
            let whole = self.entry(whole);
            new.kind == Kind::Memory && !new.merged && whole.contains(new)
        });
        around.map_or(0, |whole| whole.0 + 1)
    }

    /// The merged location that `location` is a part of, else `location` itself.
    #[inline(always)]
    pub(crate) fn whole(&self, location: Location) -> Location {
        match self.entry(location).whole {
            0 => location,
            whole => Location(whole - 1),
        }
    }

    /// The part of a merged location that `location` is, if it is one.
    #[inline(always)]
    pub(crate) fn part(&self, location: Location) -> Option<Part> {
        match self.entry(location).whole {
            0 => None,
            whole => Some(self.part_of(location, Location(whole - 1))),
        }
    }

    #[cold]
    fn part_of(&self, location: Location, whole: Location) -> Part {
        let entry = self.entry(location);
        Part {
            whole,
            offset: (entry.address - self.entry(whole).address) as u8,
            width: Width(entry.width),
        }
    }

    /// The operation that the explorer sees if `op` touches a part of a merged location.
    #[inline(always)]
    pub(crate) fn part_touched(&self, op: &Op) -> Option<Part> {
        if self.merged.is_empty() {
            return None;
        }
        self.part(op.location()?)
    }

    /// The part of a merged location that lies in a range; other locations stay as they are.
    pub(crate) fn within(
        &mut self,
        shadow: &Shadow,
        location: Location,
        range: std::ops::Range<usize>,
    ) -> Location {
        let entry = *self.entry(location);
        if !entry.merged {
            return location;
        }
        let start = range.start.max(entry.address);
        let end = range.end.min(entry.end());
        self.number(shadow, start, (end - start) as u8, Kind::Memory)
    }

    /// Whether a plain access to `location` is one event: the location was touched in execution
    /// `run`, and none that overlaps it, or it is part of a merged one.
    pub(crate) fn is_one_event(&self, location: Location, run: u32) -> bool {
        let entry = self.entry(self.whole(location));
        entry.merged || entry.run == run && entry.overlapped != run
    }

    /// Whether the memory of a location holds something else than it should, in execution `run`.
    #[inline(always)]
    pub(crate) fn lies(&self, location: Location, run: u32) -> bool {
        match self.part(location) {
            None => self.entry(location).lies(run),
            Some(part) => {
                let entry = self.entry(location);
                let known = self.entry(part.whole).known(run);
                known.is_some_and(|last| {
                    memory::read(entry.address, entry.width) != part.extract(last)
                })
            }
        }
    }

    /// The bytes that the runtime has put into the memory of a location.
    #[inline(always)]
    pub(crate) fn holds(&mut self, location: Location, value: Value) {
        let part = self.part(location);
        let whole = self.whole(location);
        self.changes(whole);
        let last = &mut self.entries[whole.index()].last;
        *last = part.map_or(value, |part| part.insert(*last, value));
    }

    /// The known contents of `width` bytes of memory at `address`, if they are a location that was
    /// touched in this execution or part of one.
    pub(crate) fn known(&self, shadow: &Shadow, address: usize, width: u8) -> Option<Value> {
        let cell = cell_of(shadow, address, Kind::Memory)?;
        let location = self.in_cell(cell).find(|&location| {
            let entry = self.entry(location);
            (entry.address, entry.width, entry.kind) == (address, width, Kind::Memory)
        })?;
        let last = self.entry(self.whole(location)).known(self.present)?;
        Some(self.part(location).map_or(last, |part| part.extract(last)))
    }

    /// The bytes of a location and of all that overlap it: what they are merged to, if that is
    /// possible.
    pub(crate) fn union(&self, location: Location) -> Option<(usize, u8)> {
        let whole = self.whole(location);
        let mut all = self.overlapping(whole);
        all.push(whole);
        let entries = || all.iter().map(|&location| self.entry(location));
        let start = entries().map(|entry| entry.address).min()?;
        let end = entries().map(Entry::end).max()?;
        let memory = entries().all(|entry| entry.kind == Kind::Memory);
        (memory && end - start <= WIDEST).then(|| (start, (end - start) as u8))
    }
}
