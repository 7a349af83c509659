//! The states that were visited, and how each was reached.

use rustc_hash::FxHashSet;

use super::chunks::Chunks;
use super::hash::spread;
use super::index::Index;
use crate::ids::ThreadId;

/// The result of a claim to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: it was reached with fewer switches before.
    Known,
    /// Nothing, unless the order of claims makes a difference: it was reached with as many before.
    Same,
    /// It was not met before.
    New,
    /// It was met before, but not with so few switches; it was not expanded yet.
    Sooner,
    /// It was met with as many switches, but not by this thread.
    Again,
}

impl Verdict {
    /// Whether there is nothing to do, if claims come in order.
    pub(super) fn is_known(self) -> bool {
        matches!(self, Verdict::Known | Verdict::Same)
    }
}

/// The number of a state, in the order in which they were met.
pub(super) type Number = u32;

/// The states met so far, each with the fewest context switches it was reached with.
pub(super) struct Visited {
    index: Index,
    records: Chunks<Record>,
    /// Whether the thread that ran last makes a difference. Then it is known too.
    every_thread: bool,
    /// Further threads that ran last, with an even and with an odd number of switches. Only the
    /// present one and the next matter.
    others: [FxHashSet<(Number, u32)>; 2],
}

/// Twenty bytes.
struct Record {
    identity: [u32; 4],
    /// The number of switches and, where that makes a difference, in the lower bits the thread.
    reached: u32,
}

const THREAD_BITS: u32 = 8;
/// Where the thread that ran last makes a difference, this many threads and this many switches are
/// possible.
pub(super) const MOST_THREADS: u32 = 1 << THREAD_BITS;
pub(super) const MOST_SWITCHES: u32 = 1 << (32 - THREAD_BITS);

fn words(identity: u128) -> [u32; 4] {
    [0, 32, 64, 96].map(|shift| (identity >> shift) as u32)
}

fn hash(identity: u128) -> u32 {
    (identity >> 96) as u32
}

impl Visited {
    /// None yet. With `every_thread`, reaching a state by another thread makes a difference.
    pub(super) fn new(every_thread: bool) -> Visited {
        Visited {
            index: Index::default(),
            records: Chunks::default(),
            every_thread,
            others: Default::default(),
        }
    }

    /// A state was reached by a step of `thread` with `layer` switches.
    pub(super) fn claim(
        &mut self,
        identity: u128,
        layer: u32,
        thread: ThreadId,
    ) -> (Number, Verdict) {
        let wanted = words(identity);
        let reached = self.reached(layer, thread);
        let (records, new) = (&self.records, self.records.len() as u32);
        let found = self.index.find_or_insert(hash(identity), new, |number| {
            records[number].identity == wanted
        });
        let Some(number) = found else {
            self.records.push(Record {
                identity: wanted,
                reached,
            });
            return (new, Verdict::New);
        };
        let known = self.records[number].reached;
        let before = self.layer_of(known);
        let verdict = if layer < before {
            self.records[number].reached = reached;
            Verdict::Sooner
        } else if layer > before {
            Verdict::Known
        } else if known != reached && self.others[layer as usize % 2].insert((number, thread.0)) {
            Verdict::Again
        } else {
            Verdict::Same
        };
        (number, verdict)
    }

    /// Makes `thread` the first thread that reached a state with `layer` switches. `before`, which was the first,
    /// becomes a further one.
    pub(super) fn put_first(&mut self, state: Number, layer: u32, thread: u32, before: u32) {
        self.records[state].reached = self.reached(layer, ThreadId(thread));
        let others = &mut self.others[layer as usize % 2];
        others.remove(&(state, thread));
        others.insert((state, before));
    }

    /// The identity of a way to reach a state, as far as it makes a difference, spread over all bits.
    pub(super) fn way(&self, layer: u32, thread: ThreadId) -> u128 {
        spread(self.reached(layer, thread).wrapping_add(1))
    }

    /// From now on, `layer` switches are the fewest that a claim is made with.
    pub(super) fn advance(&mut self, layer: u32) {
        self.others[(layer as usize + 1) % 2].clear();
    }

    fn reached(&self, layer: u32, thread: ThreadId) -> u32 {
        match self.every_thread {
            true => layer << THREAD_BITS | thread.0,
            false => layer,
        }
    }

    fn layer_of(&self, reached: u32) -> u32 {
        match self.every_thread {
            true => reached >> THREAD_BITS,
            false => reached,
        }
    }

    /// The fewest switches that a state, which was met, was reached with.
    pub(super) fn layer(&self, identity: u128) -> u32 {
        let wanted = words(identity);
        let number = self.index.find(hash(identity), |number| {
            self.records[number].identity == wanted
        });
        self.layer_of(self.records[number.expect("the state was met")].reached)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let others = self.others.iter().map(FxHashSet::capacity).sum::<usize>();
        let others = others * (size_of::<(Number, u32)>() + 1);
        self.index.bytes() + self.records.bytes() + others
    }
}
