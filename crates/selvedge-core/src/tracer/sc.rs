//! Sequential consistency without a total coherence order.
//!
//! The model keeps one transitively closed relation over all operations, as a vector clock for each:
//! program order, reads-from, creation and join, and the order that they force. For a read of `c` and
//! another write `w` of the location:
//! * `w` before the read forces `w` before `c` (the initial write has nothing before it);
//! * `c` before `w` forces the read before `w`.
//!
//! The two halves of an update are one operation, which is read and write in both rules; this makes
//! it atomic. A cycle means that the trace is inconsistent. A relation without cycles need not be
//! consistent (the problem is NP-complete), so the model also keeps a certificate: a linearization,
//! as a *rank* for each event. An event that reads the newest write is appended to it. After any
//! other read the model constructs a new one, first greedily, then by trying both orders of two
//! unordered writes.

use super::consistency::{Consistency, Newest};
use super::linearization::Linearization;
use crate::graph::{ClockTrail, Clocks, Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::Op;

/// Saturated traces under sequential consistency.
#[derive(Clone, Debug, Default)]
pub struct SaturatedSc {
    /// The clock of the operations before each operation, itself included, in the slot of its first
    /// event.
    order: Clocks,
    trail: ClockTrail,
    /// The length of `trail` before the event in each slot was added.
    marks: Vec<usize>,
    /// Operations whose clock has grown; the rules have to be applied to them again.
    queue: Vec<Slot>,
    /// Whether each slot is in `queue`.
    queued: Vec<bool>,
    /// The certificate: the rank of each event.
    ranks: Vec<u64>,
    next_rank: u64,
    /// Earlier certificates.
    shelf: Vec<Shelved>,
    shelved_ranks: Vec<u64>,
    linearization: Linearization,
}

/// The certificate before the event `cause`.
#[derive(Clone, Copy, Debug)]
struct Shelved {
    cause: Slot,
    length: usize,
    next_rank: u64,
}

/// The slot of the first event of the operation to which the event in `slot` belongs.
fn operation(graph: &Graph, slot: Slot) -> Slot {
    match graph.event(slot).kind {
        Kind::WriteHalf => slot - 1,
        _ => slot,
    }
}

/// The write event of the operation in `slot`.
pub(super) fn write_of(graph: &Graph, slot: Slot) -> Option<Slot> {
    match graph.event(slot).kind {
        Kind::Write => Some(slot),
        Kind::ReadHalf => Some(slot + 1),
        _ => None,
    }
}

impl Consistency for SaturatedSc {
    fn sources(&mut self, graph: &Graph, thread: ThreadId, at: Location, sources: &mut Vec<Slot>) {
        sources.clear();
        let writes = graph.coherence(at);
        let last = graph.last(thread).map(|slot| operation(graph, slot));
        let known = |&write: &Slot| last.is_some_and(|last| self.before(graph, write, last));
        if !writes.iter().any(known) {
            sources.push(INIT);
        }
        let overwritten = |source: Slot| {
            let mut known = writes.iter().filter(|write| known(write));
            known.any(|&w| w != source && self.before(graph, source, operation(graph, w)))
        };
        sources.extend(writes.iter().filter(|&&write| !overwritten(write)));
    }

    fn added(&mut self, graph: &Graph, slot: Slot) -> bool {
        self.order.widen(graph.threads());
        self.order.push_zero();
        self.marks.push(self.trail.mark());
        self.queued.push(false);
        self.ranks.push(self.next_rank);
        self.next_rank += 1;
        if graph.event(slot).kind == Kind::ReadHalf {
            return true;
        }
        let operation = operation(graph, slot);
        self.begin(graph, operation, slot);
        if !self.saturate_new(graph, operation) {
            return false;
        }
        if self.reads_newest(graph, operation) {
            return true;
        }
        self.shelve(slot);
        self.certify(graph)
    }

    fn undo(&mut self, graph: &Graph, events: usize) {
        debug_assert!(graph.len() >= events);
        if self.marks.len() <= events {
            return;
        }
        self.unwind(self.marks[events]);
        self.marks.truncate(events);
        self.order.truncate(events as Slot);
        self.queued.truncate(events);
        while let Some(&shelved) = self.shelf.last()
            && shelved.cause as usize >= events
        {
            self.unshelve();
        }
        self.ranks.truncate(events);
    }

    fn newest(&self, graph: &Graph, at: Location) -> Option<Slot> {
        let writes = graph.coherence(at);
        if writes.is_empty() {
            return Some(INIT);
        }
        let mut candidates = writes.iter().copied();
        candidates.find(|&last| {
            let last = operation(graph, last);
            writes.iter().all(|&write| self.before(graph, write, last))
        })
    }

    fn orders(&mut self, graph: &Graph, newest: &[Newest]) -> Option<Vec<(Location, Vec<Slot>)>> {
        let mark = self.trail.mark();
        self.shelve(graph.len() as Slot);
        let possible = self.settle(graph, newest) && (newest.is_empty() || self.certify(graph));
        let orders = possible.then(|| {
            let locations = graph.locations().iter();
            let ranked = locations.map(|&at| {
                let mut writes = graph.coherence(at).to_vec();
                writes.sort_by_key(|&write| self.ranks[write as usize]);
                (at, writes)
            });
            ranked.collect()
        });
        self.unwind(mark);
        self.unshelve();
        orders
    }
}

impl SaturatedSc {
    /// Computes the clock of a new operation from its direct predecessors.
    fn begin(&mut self, graph: &Graph, new: Slot, last: Slot) {
        let event = graph.event(new);
        let predecessor = graph.predecessor(event.id);
        if let Some(predecessor) = predecessor {
            self.order.copy(new, operation(graph, predecessor));
        }
        if event.kind.reads() && event.source != INIT {
            self.order.join(new, operation(graph, event.source));
        }
        match event.op {
            Op::Join { child } => self.join(graph, new, child),
            Op::JoinAll => {
                for child in (0..graph.threads() as u32).map(ThreadId) {
                    if child != event.id.thread {
                        self.join(graph, new, child);
                    }
                }
            }
            _ => {}
        }
        let counted = graph.event(last).id.index + 1;
        self.order.of_mut(new)[event.id.thread.index()] = counted;
    }

    fn join(&mut self, graph: &Graph, new: Slot, child: ThreadId) {
        if let Some(last) = graph.last(child) {
            self.order.join(new, operation(graph, last));
        }
    }

    fn before(&self, graph: &Graph, one: Slot, other: Slot) -> bool {
        graph.counted(self.order.of(other), one)
    }

    /// Applies the rules to a new operation, and to all operations whose clocks grow.
    fn saturate_new(&mut self, graph: &Graph, new: Slot) -> bool {
        let event = graph.event(new);
        let Some(at) = event.op.location() else {
            return true;
        };
        if event.kind.reads() {
            let source = event.source;
            for &write in graph.coherence(at) {
                let other = operation(graph, write);
                if other == new || write == source {
                    continue;
                }
                let overwrites = source == INIT || self.before(graph, source, other);
                if overwrites && !self.edge(graph, new, other) {
                    return false;
                }
            }
        }
        self.saturate(graph, new) && self.drain(graph)
    }

    fn drain(&mut self, graph: &Graph) -> bool {
        let mut consistent = true;
        while let Some(slot) = self.queue.pop() {
            self.queued[slot as usize] = false;
            consistent = consistent && self.saturate(graph, slot);
        }
        consistent
    }

    /// Applies the rules to one operation whose clock has grown.
    fn saturate(&mut self, graph: &Graph, slot: Slot) -> bool {
        let event = graph.event(slot);
        let Some(at) = event.op.location() else {
            return true;
        };
        let own = write_of(graph, slot);
        let writes = graph.coherence(at);
        if event.kind.reads() {
            for &write in writes {
                let is_other = Some(write) != own && write != event.source;
                if is_other && self.before(graph, write, slot) {
                    if event.source == INIT {
                        return false;
                    }
                    let source = operation(graph, event.source);
                    if !self.edge(graph, operation(graph, write), source) {
                        return false;
                    }
                }
            }
        }
        if own.is_some() {
            for overwritten in std::iter::once(INIT).chain(writes.iter().copied()) {
                let known = overwritten == INIT || self.before(graph, overwritten, slot);
                if Some(overwritten) == own || !known {
                    continue;
                }
                for reader in graph.readers(at, overwritten) {
                    if reader != slot && !self.edge(graph, reader, slot) {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Orders one operation before another. False if this closes a cycle.
    fn edge(&mut self, graph: &Graph, one: Slot, other: Slot) -> bool {
        if self.before(graph, one, other) {
            return true;
        }
        if self.before(graph, other, one) {
            return false;
        }
        let id = graph.event(other).id;
        for slot in 0..self.order.len() as Slot {
            let clock = self.order.of(slot);
            if clock[id.thread.index()] <= id.index {
                continue;
            }
            self.trail.save(&self.order, slot, other);
            self.order.join(slot, one);
            if !std::mem::replace(&mut self.queued[slot as usize], true) {
                self.queue.push(slot);
            }
        }
        true
    }

    /// Restores the clocks down to `mark`, and empties the queue.
    fn unwind(&mut self, mark: usize) {
        self.trail.unwind(&mut self.order, mark);
        while let Some(slot) = self.queue.pop() {
            self.queued[slot as usize] = false;
        }
    }

    /// Whether the operation in `slot`, the last one, can be appended to the certificate.
    fn reads_newest(&self, graph: &Graph, slot: Slot) -> bool {
        let event = graph.event(slot);
        let Some(at) = event.op.location().filter(|_| event.kind.reads()) else {
            return true;
        };
        let own = write_of(graph, slot);
        let rank = match event.source {
            INIT => None,
            source => Some(self.ranks[source as usize]),
        };
        let mut others = graph.coherence(at).iter();
        others.all(|&write| Some(write) == own || Some(self.ranks[write as usize]) <= rank)
    }

    fn shelve(&mut self, cause: Slot) {
        self.shelf.push(Shelved {
            cause,
            length: self.ranks.len(),
            next_rank: self.next_rank,
        });
        self.shelved_ranks.extend_from_slice(&self.ranks);
    }

    fn unshelve(&mut self) {
        if let Some(shelved) = self.shelf.pop() {
            let start = self.shelved_ranks.len() - shelved.length;
            self.ranks.clear();
            self.ranks.extend_from_slice(&self.shelved_ranks[start..]);
            self.shelved_ranks.truncate(start);
            self.next_rank = shelved.next_rank;
        }
    }

    /// Constructs a certificate. Writes that are unordered now stay unordered.
    fn certify(&mut self, graph: &Graph) -> bool {
        if self.linearize(graph) {
            return true;
        }
        let Some((one, other)) = self.open_pair(graph) else {
            return false;
        };
        let mark = self.trail.mark();
        for (first, second) in [(one, other), (other, one)] {
            let possible =
                self.edge(graph, first, second) && self.drain(graph) && self.certify(graph);
            self.unwind(mark);
            if possible {
                return true;
            }
        }
        false
    }

    /// Two unordered writes of one location.
    fn open_pair(&self, graph: &Graph) -> Option<(Slot, Slot)> {
        graph.locations().iter().find_map(|&at| {
            let writes = graph.coherence(at);
            let operations = writes.iter().map(|&write| operation(graph, write));
            let mut rest = operations.clone().enumerate();
            rest.find_map(|(index, one)| {
                let mut later = operations.clone().skip(index + 1);
                later
                    .find(|&other| {
                        !self.before(graph, one, other) && !self.before(graph, other, one)
                    })
                    .map(|other| (one, other))
            })
        })
    }

    /// Constructs a linearization greedily, reads as early as possible. May fail where it chose a
    /// wrong write.
    fn linearize(&mut self, graph: &Graph) -> bool {
        let mut built = std::mem::take(&mut self.linearization);
        built.start(graph);
        let threads = (0..graph.threads() as u32).map(ThreadId);
        let mut rank = 0;
        loop {
            let mut progress = false;
            for thread in threads.clone() {
                while let Some(slot) = built.next(graph, thread)
                    && write_of(graph, slot).is_none()
                    && built.ready(graph, slot, self.order.of(slot))
                {
                    built.append(graph, slot, &mut rank);
                    progress = true;
                }
            }
            let mut writes = threads.clone().filter_map(|thread| {
                let slot = built.next(graph, thread)?;
                built
                    .ready(graph, slot, self.order.of(slot))
                    .then_some(slot)
            });
            if let Some(slot) = writes.next() {
                built.append(graph, slot, &mut rank);
                progress = true;
            }
            if !progress {
                break;
            }
        }
        let complete = rank as usize == graph.len();
        if complete {
            self.ranks.clone_from(&built.ranks);
            self.next_rank = rank;
        }
        self.linearization = built;
        complete
    }

    /// Orders all other writes before those that are to be last.
    fn settle(&mut self, graph: &Graph, newest: &[Newest]) -> bool {
        newest.iter().all(|&(at, newest)| {
            let mut others = graph.coherence(at).iter().filter(|&&w| w != newest);
            others.all(|&write| {
                newest != INIT
                    && self.edge(graph, operation(graph, write), operation(graph, newest))
            })
        }) && self.drain(graph)
    }
}
