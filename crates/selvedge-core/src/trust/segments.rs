//! The parts of a search tree in the order in which one search would come to them.
//!
//! A coordinator takes up thousands of answers a second while a million units may be open. So every part has a
//! *place*, a number that grows along the tree, and everything is found by that: no call of a search looks through
//! all parts, except where an ending cuts the tree off.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::frontier::{Found, Known, UnitId};
use crate::failure::Failure;
use crate::report::{Counts, same_bug};

/// A part of the tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Segment<U, B> {
    Done(Box<Found<B>>),
    Open(Open<U>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Open<U> {
    pub(super) id: UnitId,
    pub(super) unit: U,
    pub(super) share: f64,
    #[serde(skip)]
    pub(super) taken: bool,
}

/// A number that grows along the tree. All numbers up to the next part's are for what an open unit leaves.
type Place = u128;

/// A share of the tree, by size.
#[derive(Clone, Copy, Debug)]
struct Share(f64);

impl Ord for Share {
    fn cmp(&self, other: &Share) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Share {
    fn partial_cmp(&self, other: &Share) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Share) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Share {}

/// All parts of a search tree. Two neighbours are never both done.
#[derive(Clone, Debug)]
pub(super) struct Segments<U, B> {
    all: BTreeMap<Place, Segment<U, B>>,
    /// The open units.
    places: BTreeMap<UnitId, Place>,
    /// The open units that no worker has.
    free: BTreeSet<(Share, Place)>,
    /// The parts that are done and have bugs.
    with_bugs: BTreeSet<Place>,
    /// Sums over the parts that are done, and the shares of the others.
    counts: Counts,
    left: f64,
}

impl<U, B> Segments<U, B> {
    /// These parts.
    pub(super) fn new(segments: impl IntoIterator<Item = Segment<U, B>>) -> Segments<U, B> {
        let all = segments.into_iter().enumerate();
        let mut segments = Segments {
            all: all.map(|(at, part)| (at as Place, part)).collect(),
            places: BTreeMap::new(),
            free: BTreeSet::new(),
            with_bugs: BTreeSet::new(),
            counts: Counts::default(),
            left: 0.0,
        };
        segments.spread();
        segments
    }

    /// Makes the same room behind all parts.
    fn spread(&mut self) {
        let room = Place::MAX / (self.all.len() as Place + 1);
        let parts = std::mem::take(&mut self.all).into_values().enumerate();
        self.all = parts.map(|(at, part)| (at as Place * room, part)).collect();
        self.index();
    }

    /// Computes everything that follows from the parts and their places.
    fn index(&mut self) {
        self.places.clear();
        self.free.clear();
        self.with_bugs.clear();
        (self.counts, self.left) = (Counts::default(), 0.0);
        for (&place, segment) in &self.all {
            match segment {
                Segment::Open(open) => {
                    self.left += open.share;
                    self.places.insert(open.id, place);
                    if !open.taken {
                        self.free.insert((Share(open.share), place));
                    }
                }
                Segment::Done(found) => {
                    self.counts += found.counts;
                    if !found.bugs.is_empty() {
                        self.with_bugs.insert(place);
                    }
                }
            }
        }
    }

    /// The largest unit that no worker has. Of several, the last one in the tree.
    pub(super) fn largest(&self) -> Option<UnitId> {
        let &(_, place) = self.free.last()?;
        self.open_at(place).map(|open| open.id)
    }

    /// The unit that one search would come to next.
    pub(super) fn first(&self) -> Option<&Open<U>> {
        self.all.values().find_map(|segment| match segment {
            Segment::Open(open) => Some(open),
            Segment::Done(_) => None,
        })
    }

    fn open_at(&self, place: Place) -> Option<&Open<U>> {
        match self.all.get(&place)? {
            Segment::Open(open) => Some(open),
            Segment::Done(_) => None,
        }
    }

    pub(super) fn open(&self, id: UnitId) -> Option<&Open<U>> {
        self.open_at(*self.places.get(&id)?)
    }

    /// Says whether a worker has the unit.
    pub(super) fn set_taken(&mut self, id: UnitId, taken: bool) {
        if let Some(&place) = self.places.get(&id)
            && let Some(Segment::Open(open)) = self.all.get_mut(&place)
        {
            open.taken = taken;
            match taken {
                true => self.free.remove(&(Share(open.share), place)),
                false => self.free.insert((Share(open.share), place)),
            };
        }
    }

    /// No worker has any unit.
    pub(super) fn give_back_all(&mut self) {
        for (&place, segment) in &mut self.all {
            if let Segment::Open(open) = segment {
                open.taken = false;
                self.free.insert((Share(open.share), place));
            }
        }
    }

    pub(super) fn free(&self) -> usize {
        self.free.len()
    }

    pub(super) fn number_open(&self) -> usize {
        self.places.len()
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }

    /// The shares of all open units.
    pub(super) fn left(&self) -> f64 {
        self.left
    }

    /// The findings of the parts that are done.
    pub(super) fn done(&self) -> impl Iterator<Item = &Found<B>> {
        self.all.values().filter_map(|segment| match segment {
            Segment::Done(found) => Some(&**found),
            Segment::Open(_) => None,
        })
    }
}

impl<U, B: Known> Segments<U, B> {
    /// The different bugs that are known from before a unit, or all of them.
    pub(super) fn bugs(&self, before: Option<UnitId>) -> Vec<&Failure> {
        let end = before.and_then(|id| self.places.get(&id));
        let mut bugs: Vec<&Failure> = Vec::new();
        for place in self.with_bugs.range(..end.copied().unwrap_or(Place::MAX)) {
            let Some(Segment::Done(found)) = self.all.get(place) else {
                continue;
            };
            for bug in &found.bugs {
                if !bugs.iter().any(|known| same_bug(known, bug.failure())) {
                    bugs.push(bug.failure());
                }
            }
        }
        bugs
    }

    /// In the place of unit `id` come `found` and the units `rest`. An ending ends the tree there.
    pub(super) fn replace(&mut self, id: UnitId, found: Found<B>, rest: Vec<Open<U>>) {
        let Some(mut place) = self.places.get(&id).copied() else {
            return;
        };
        if found.ending.is_some() {
            self.all.split_off(&place);
            self.finish(place, found);
            self.index();
            return;
        }
        if self.end_of(place) - place <= rest.len() as Place {
            self.spread();
            place = self.places[&id];
        }
        if let Some(Segment::Open(open)) = self.all.remove(&place) {
            self.left -= open.share;
            self.free.remove(&(Share(open.share), place));
        }
        self.places.remove(&id);
        self.counts += found.counts;
        let done = self.finish(place, found);
        if rest.is_empty() {
            self.join_next(done);
        }
        let step = (self.end_of(done) - done - 1) / (rest.len() as Place).max(1);
        for (at, open) in rest.into_iter().enumerate() {
            let place = done + 1 + at as Place * step;
            self.left += open.share;
            self.places.insert(open.id, place);
            self.free.insert((Share(open.share), place));
            self.all.insert(place, Segment::Open(open));
        }
        if self.places.is_empty() {
            self.left = 0.0;
        }
    }

    /// The place of the part after the one at `place`.
    fn end_of(&self, place: Place) -> Place {
        let next = self.all.range(place + 1..).next();
        next.map_or(Place::MAX, |(&next, _)| next)
    }

    /// Adds what was found to the part before `place` if that is done; otherwise it is a part of its own. The place of
    /// that part.
    fn finish(&mut self, place: Place, found: Found<B>) -> Place {
        let bugs = !found.bugs.is_empty();
        let at = match self.all.range_mut(..place).next_back() {
            Some((&before, Segment::Done(done))) => {
                done.append(found);
                before
            }
            _ => {
                self.all.insert(place, Segment::Done(Box::new(found)));
                place
            }
        };
        if bugs {
            self.with_bugs.insert(at);
        }
        at
    }

    /// Makes one of the part at `place` and the next one if both are done.
    fn join_next(&mut self, place: Place) {
        let next = self.end_of(place);
        if !matches!(self.all.get(&next), Some(Segment::Done(_))) {
            return;
        }
        if let Some(Segment::Done(found)) = self.all.remove(&next) {
            self.with_bugs.remove(&next);
            self.finish(place + 1, *found);
        }
    }
}

impl<U: Serialize, B: Serialize> Serialize for Segments<U, B> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.all.values())
    }
}

impl<'de, U: Deserialize<'de>, B: Deserialize<'de>> Deserialize<'de> for Segments<U, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Segments<U, B>, D::Error> {
        let parts: Vec<Segment<U, B>> = Vec::deserialize(deserializer)?;
        let open = parts.iter().filter(|part| matches!(part, Segment::Open(_)));
        let open = open.count();
        let segments = Segments::new(parts);
        match segments.number_open() == open {
            true => Ok(segments),
            false => Err(de::Error::custom("two units have one number")),
        }
    }
}
