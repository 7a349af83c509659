//! Which states were met, and how.

use rustc_hash::FxHashSet;

use super::chunks::Chunks;
use super::index::Index;
use crate::ids::ThreadId;

/// What a claim to a state comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Nothing: it was reached as well before.
    Known,
    /// It was not met before.
    New,
    /// It was met before, but not with so few switches; nobody has looked at it yet.
    Sooner,
    /// It was met with as many switches, but not by this thread.
    Again,
}

/// The states met so far, each with the fewest context switches it was reached with and a thread that ran last then.
#[derive(Default)]
pub(super) struct Visited {
    index: Index,
    records: Chunks<Record>,
    /// Further threads that ran last: state, number of switches, thread.
    others: FxHashSet<(u32, u32, u32)>,
}

struct Record {
    identity: [u64; 2],
    layer: u32,
    thread: u32,
}

fn halves(identity: u128) -> [u64; 2] {
    [identity as u64, (identity >> 64) as u64]
}

fn hash(identity: u128) -> u32 {
    (identity >> 96) as u32
}

impl Visited {
    /// A state was reached by a step of `thread` with `layer` switches. With `every_thread`, reaching it by another
    /// thread makes a difference.
    pub(super) fn claim(
        &mut self,
        identity: u128,
        layer: u32,
        thread: ThreadId,
        every_thread: bool,
    ) -> Verdict {
        let identity_halves = halves(identity);
        let (records, new) = (&self.records, self.records.len() as u32);
        let found = self.index.find_or_insert(hash(identity), new, |number| {
            records[number].identity == identity_halves
        });
        let Some(number) = found else {
            self.records.push(Record {
                identity: identity_halves,
                layer,
                thread: thread.0,
            });
            return Verdict::New;
        };
        let record = &mut self.records[number];
        if layer < record.layer {
            (record.layer, record.thread) = (layer, thread.0);
            Verdict::Sooner
        } else if every_thread
            && layer == record.layer
            && thread.0 != record.thread
            && self.others.insert((number, layer, thread.0))
        {
            Verdict::Again
        } else {
            Verdict::Known
        }
    }

    /// The fewest switches that a state, which was met, was reached with.
    pub(super) fn layer(&self, identity: u128) -> u32 {
        let wanted = halves(identity);
        let number = self.index.find(hash(identity), |number| {
            self.records[number].identity == wanted
        });
        self.records[number.expect("the state was met")].layer
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        let others = self.others.capacity() * (size_of::<(u32, u32, u32)>() + 1);
        self.index.bytes() + self.records.bytes() + others
    }
}
