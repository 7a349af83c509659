//! The iterations of an await that were tried, as a tree of the writes they read.

use crate::graph::{Graph, Slot};
use crate::ids::{EventId, Location};

/// All iterations that begin with the read of one frame. Their reads take writes that were in the
/// graph when that frame was opened.
#[derive(Debug, Default)]
pub(in crate::tracer) struct Iterations {
    reads: Vec<Read>,
    /// The locations of candidate writes, and of other writes concurrent with an iteration.
    written: Vec<Location>,
    /// The thread can leave one loop and then wait forever in another one.
    pub(super) stays_later: bool,
}

#[derive(Debug)]
struct Read {
    /// The read before it, or [`START`].
    before: u32,
    source: Slot,
    outcome: Outcome,
}

const START: u32 = u32::MAX;

/// The step of the thread after a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It leaves the await: it does something else than reading on.
    Leaves,
    /// It stays in the loop.
    Stays,
    /// It reads this location next.
    ReadsOn(Location),
}

impl Iterations {
    pub(in crate::tracer) fn clear(&mut self) {
        self.reads.clear();
        self.written.clear();
        self.stays_later = false;
    }

    /// Records the outcome of reading `source` with the event `index` in the iteration that `graph`
    /// holds from the event `first` on; `read` is `(first, index)`.
    pub(super) fn add(
        &mut self,
        graph: &Graph,
        read: (EventId, u32),
        source: Slot,
        outcome: Outcome,
    ) {
        let before = self.follow(graph, read);
        let before = before.expect("the reads before it were recorded");
        self.reads.push(Read {
            before,
            source,
            outcome,
        });
    }

    /// The recorded outcome of such a read.
    pub(super) fn outcome(
        &self,
        graph: &Graph,
        read: (EventId, u32),
        source: Slot,
    ) -> Option<Outcome> {
        let before = self.follow(graph, read)?;
        let next = self.next(before, source)?;
        Some(self.reads[next as usize].outcome)
    }

    /// Records a write, or an update that is still blocked, of another thread to `at` that is
    /// concurrent with an iteration.
    pub(in crate::tracer) fn note_write(&mut self, at: Location) {
        if !self.written.contains(&at) {
            self.written.push(at);
        }
    }

    pub(in crate::tracer) fn knows_write(&self, at: Location) -> bool {
        self.written.contains(&at)
    }

    /// Whether skipping the await, whose first read is of `at`, can lead to an execution that no
    /// iteration leads to. See the [module](super).
    pub(super) fn can_skip(&self, at: Location, newest: impl Fn(Location) -> Option<Slot>) -> bool {
        let further = self.reads.iter().filter_map(|read| match read.outcome {
            Outcome::ReadsOn(at) => Some(at),
            _ => None,
        });
        self.stays_later
            || std::iter::once(at)
                .chain(further)
                .any(|at| self.knows_write(at))
            || !self.leaves_with_newest(at, newest)
    }

    /// Whether the thread leaves the await if each read takes the write that is last in every
    /// coherence order.
    fn leaves_with_newest(
        &self,
        mut at: Location,
        newest: impl Fn(Location) -> Option<Slot>,
    ) -> bool {
        let mut before = START;
        loop {
            let Some(next) = newest(at).and_then(|source| self.next(before, source)) else {
                return false;
            };
            match self.reads[next as usize].outcome {
                Outcome::Leaves => return true,
                Outcome::Stays => return false,
                Outcome::ReadsOn(location) => at = location,
            }
            before = next;
        }
    }

    fn next(&self, before: u32, source: Slot) -> Option<u32> {
        let mut reads = self.reads.iter();
        let found = reads.position(|read| (read.before, read.source) == (before, source));
        found.map(|read| read as u32)
    }

    /// The last read of the iteration that `graph` holds from `first` up to the event `index`.
    fn follow(&self, graph: &Graph, (first, index): (EventId, u32)) -> Option<u32> {
        let events = &graph.thread(first.thread)[first.index as usize..index as usize];
        let events = events.iter().map(|&slot| graph.event(slot));
        let mut reads = events.filter(|event| event.kind.reads());
        reads.try_fold(START, |before, event| self.next(before, event.source))
    }
}
