//! A whole search in slices: what is left of it and what was found, in the order of the search tree.
//!
//! Units can be explored in any order, by any process, several at a time: the answers are put together in
//! the order in which one search would have come to them. So counts, bugs and the bug that ends a
//! search do not depend on how the search was divided.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::segments::{Open, Segment, Segments};
use crate::failure::Failure;
use crate::machine::Fact;
use crate::report::{Counts, Ending, same_bug};

/// The number of a unit that is being explored.
pub type UnitId = u64;

/// A bug as the frontier keeps it.
pub trait Known {
    /// The failure.
    fn failure(&self) -> &Failure;
}

impl Known for crate::report::Bug {
    fn failure(&self) -> &Failure {
        &self.failure
    }
}

/// The findings in a part of the tree that is done.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found<B> {
    /// The counts.
    pub counts: Counts,
    /// The bugs, each once.
    pub bugs: Vec<B>,
    /// The first bug was found in the execution with this number, of all that ended in any way.
    pub first_bug: Option<u64>,
    /// The first bug in an execution beyond the bound.
    pub beyond: Option<B>,
    /// Whether some loop was cut off by the bound that the user set.
    pub unrolled: bool,
    /// The ending of the search there, if it ended.
    pub ending: Option<Ending>,
}

impl<B> Default for Found<B> {
    fn default() -> Found<B> {
        Found {
            counts: Counts::default(),
            bugs: Vec::new(),
            first_bug: None,
            beyond: None,
            unrolled: false,
            ending: None,
        }
    }
}

impl<B: Known> Found<B> {
    /// Adds what was found in the next part.
    pub(super) fn append(&mut self, next: Found<B>) {
        let before = self.counts.all();
        let first = next.first_bug.map(|number| before.saturating_add(number));
        self.first_bug = self.first_bug.or(first);
        self.counts += next.counts;
        for bug in next.bugs {
            let known = |old: &B| same_bug(old.failure(), bug.failure());
            if !self.bugs.iter().any(known) {
                self.bugs.push(bug);
            }
        }
        self.beyond = self.beyond.take().or(next.beyond);
        self.unrolled |= next.unrolled;
        self.ending = next.ending;
    }
}

/// The remaining work of a search and its findings, in the order of the search tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Frontier<U, B> {
    segments: Segments<U, B>,
    root: U,
    next: UnitId,
    /// How often the search started over.
    epoch: u32,
    /// The facts that are relied on not to hold.
    relied: BTreeSet<Fact>,
    /// The facts that hold, as ranges of first and last.
    learned: Vec<(Fact, Fact)>,
}

impl<U: Clone, B: Known + Clone> Frontier<U, B> {
    /// A search that has not begun; `root` is all of it.
    pub fn new(root: U) -> Frontier<U, B> {
        let mut frontier = Frontier {
            segments: Segments::new([]),
            root,
            next: 0,
            epoch: 0,
            relied: BTreeSet::new(),
            learned: Vec::new(),
        };
        frontier.begin();
        frontier
    }

    fn begin(&mut self) {
        let root = self.open(self.root.clone(), 1.0);
        self.segments = Segments::new([Segment::Open(root)]);
    }

    fn open(&mut self, unit: U, share: f64) -> Open<U> {
        self.next += 1;
        Open {
            id: self.next,
            unit,
            share,
            taken: false,
        }
    }

    /// Hands out the largest unit that no worker has.
    pub fn take(&mut self) -> Option<(UnitId, U)> {
        self.hand_out(self.segments.largest()?)
    }

    /// Hands out the unit that one search would come to next, if no worker has it.
    pub fn take_first(&mut self) -> Option<(UnitId, U)> {
        let first = self.segments.first().filter(|open| !open.taken)?.id;
        self.hand_out(first)
    }

    fn hand_out(&mut self, id: UnitId) -> Option<(UnitId, U)> {
        self.segments.set_taken(id, true);
        Some((id, self.unit(id)?.clone()))
    }

    /// How many units no worker has.
    pub fn waiting(&self) -> usize {
        self.segments.free()
    }

    /// Whether a unit is still of interest.
    pub fn wants(&self, id: UnitId) -> bool {
        self.segments.open(id).is_some()
    }

    /// A unit that is still of interest.
    pub fn unit(&self, id: UnitId) -> Option<&U> {
        self.segments.open(id).map(|open| &open.unit)
    }

    /// Takes a unit back that was handed out.
    pub fn give_back(&mut self, id: UnitId) {
        self.segments.set_taken(id, false);
    }

    /// Takes all units back that were handed out.
    pub fn give_back_all(&mut self) {
        self.segments.give_back_all();
    }

    /// The different bugs that are known from before unit `id`: they need not be found again there.
    pub fn known_before(&self, id: UnitId) -> Vec<Failure> {
        self.segments.bugs(Some(id)).into_iter().cloned().collect()
    }

    /// Unit `id` was explored: `found` comes first, and `rest` is left, each with its share, in the
    /// order of the tree. Ignored if the unit is no longer of interest.
    pub fn answer(&mut self, id: UnitId, found: Found<B>, rest: Vec<(U, f64)>) {
        let rest = rest.into_iter();
        let rest = rest.map(|(unit, share)| self.open(unit, share)).collect();
        self.segments.replace(id, found, rest);
    }

    /// Whether nothing is left to be explored.
    pub fn is_done(&self) -> bool {
        self.units() == 0
    }

    /// The findings so far, in the order of the tree.
    pub fn found(&self) -> Found<B> {
        let mut all = Found::default();
        for found in self.segments.done() {
            all.append(found.clone());
        }
        all
    }

    /// The number of different bugs so far.
    pub fn bugs(&self) -> usize {
        self.segments.bugs(None).len()
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.segments.counts()
    }

    /// The part of the tree that is left, where all of it is 1.
    pub fn left(&self) -> f64 {
        self.segments.left()
    }

    /// How many units there are.
    pub fn units(&self) -> usize {
        self.segments.number_open()
    }

    /// How often the search started over.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The facts that hold.
    pub fn learned(&self) -> &[(Fact, Fact)] {
        &self.learned
    }

    /// Takes up what the machine of a slice relied on, and what it found to hold. True if the search
    /// has to start over because something that was relied on does not hold.
    pub fn learn(&mut self, relied: &[Fact], learned: &[(Fact, Fact)]) -> bool {
        let before = self.relied.len();
        self.relied.extend(relied);
        if self.relied.len() == before && learned.is_empty() {
            return false;
        }
        self.learned.extend(learned);
        self.learned.sort_unstable();
        self.learned.dedup_by(|next, last| {
            let joins = next.0 <= last.1.saturating_add(1);
            if joins {
                last.1 = last.1.max(next.1);
            }
            joins
        });
        let all = self.relied.len();
        let learned = &self.learned;
        self.relied.retain(|&fact| {
            let after = learned.partition_point(|&(first, _)| first <= fact);
            after == 0 || learned[after - 1].1 < fact
        });
        self.relied.len() < all
    }

    /// Starts over, knowing what was learned.
    pub fn start_over(&mut self) {
        self.epoch += 1;
        self.begin();
    }
}
