//! Total store order, the model of x86 (Alglave, Maranget and Tautschnig, "Herding cats", TOPLAS
//! 2014, §4.5). Accesses are what compilers make of them: those with order `seq_cst` that write are
//! `xchg` and with that full fences, like updates (those that fail as well, like a `lock cmpxchg`),
//! SC fences, creations and joins; all others are plain instructions.
//!
//! ```text
//! acyclic(po|loc ∪ rf ∪ co ∪ fr)                                   per location
//! acyclic(ppo ∪ fences ∪ rfe ∪ co ∪ fr)   where ppo = po \ (W × R)
//! ```
//!
//! In the second relation a thread consists of two chains: its writes, each after all earlier events of
//! the thread, and its reads, each after the earlier reads and, where a fence is in between, after the
//! earlier writes. For each event two vector clocks with two entries per thread
//! are kept: what the thread's next read and what its next write would come after. The first is
//! also the clock of a read, the second that of a write.
//!
//! As under SC, a new event has one outgoing edge at most that others do not imply, to the next newer
//! write, so the positions it may take are a suffix of the coherence order.

use super::{Access, Model};
use crate::graph::{ClockTrail, Clocks, Event, Graph, INIT, Slot};
use crate::ids::{EventId, ThreadId};
use crate::op::{MemoryOrder, Op};

/// The model `tso`.
#[derive(Clone, Debug, Default)]
pub struct TotalStoreOrder {
    /// The events that a read right after the event would come after.
    reads: Clocks,
    /// The events that a write right after the event would come after: those of a read, and more.
    writes: Clocks,
    reads_trail: ClockTrail,
    writes_trail: ClockTrail,
    /// Scratch: events that come after some that were added later.
    late: Vec<Slot>,
}

/// The chains of its thread that an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Chain {
    Reads,
    Writes,
    Both,
    Neither,
}

fn chain(event: &Event) -> Chain {
    match event.op {
        Op::Load { .. } => Chain::Reads,
        Op::Store { order, .. } if order != MemoryOrder::SeqCst => Chain::Writes,
        Op::Fence { order } if order != MemoryOrder::SeqCst => Chain::Neither,
        Op::Choose { .. } => Chain::Neither,
        _ => Chain::Both,
    }
}

/// The entry of a clock for the reads, fences, creations and joins of a thread.
fn reads_of(thread: ThreadId) -> usize {
    2 * thread.index()
}

/// The entry of a clock for the writes of a thread.
fn writes_of(thread: ThreadId) -> usize {
    2 * thread.index() + 1
}

/// Whether a read sees what another thread wrote.
fn is_external(graph: &Graph, read: &Event) -> bool {
    read.source != INIT && graph.event(read.source).id.thread != read.id.thread
}

fn counts_write(clock: &[u32], id: EventId) -> bool {
    clock[writes_of(id.thread)] > id.index
}

impl Model for TotalStoreOrder {
    fn clear(&mut self) {
        self.reads.truncate(0);
        self.writes.truncate(0);
        self.reads_trail.clear();
        self.writes_trail.clear();
    }

    fn oldest(&mut self, graph: &Graph, access: &Access) -> usize {
        let Some(predecessor) = access.predecessor else {
            return 0;
        };
        let before = match access.op {
            Op::Load { .. } => self.reads.of(predecessor),
            _ => self.writes.of(predecessor),
        };
        let own = |slot: Slot| graph.event(slot).id.thread == access.thread;
        let location = access.location;
        let coherence = graph.coherence(location);
        for position in (1..=coherence.len()).rev() {
            let write = coherence[position - 1];
            if counts_write(before, graph.event(write).id)
                || own(write)
                || graph.readers(location, write).any(own)
            {
                return position;
            }
        }
        0
    }

    fn added(&mut self, graph: &Graph, slot: Slot) {
        self.widen(graph);
        self.reads.push_zero();
        self.writes.push_zero();
        self.collect(graph, slot);
        self.propagate(graph, slot);
    }

    fn undo(&mut self, events: usize) {
        self.reads_trail.undo(&mut self.reads, events);
        self.writes_trail.undo(&mut self.writes, events);
        self.reads.truncate(events as Slot);
        self.writes.truncate(events as Slot);
    }

    fn rebuild(&mut self, graph: &Graph, unbound: Option<Slot>) {
        self.clear();
        self.widen(graph);
        for _ in 0..graph.len() {
            self.reads.push_zero();
            self.writes.push_zero();
        }
        // Together with program order the edges may form cycles, so there need not be an order in
        // which each event comes after all that it needs. The order of addition is one except for a
        // few events: it is repeated until nothing changes for these.
        let mut late = std::mem::take(&mut self.late);
        late.clear();
        for slot in (0..graph.len() as Slot).filter(|&slot| Some(slot) != unbound) {
            if self.collect(graph, slot) {
                late.push(slot);
            }
        }
        while let Some(&first) = late.iter().find(|&&slot| self.collect_anew(graph, slot)) {
            for slot in (first + 1..graph.len() as Slot).filter(|&slot| Some(slot) != unbound) {
                self.collect(graph, slot);
            }
        }
        self.late = late;
    }

    fn bound(&mut self, graph: &Graph, slot: Slot) {
        self.collect(graph, slot);
        self.propagate(graph, slot);
    }

    fn happens_before<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32] {
        // A read of a write comes after all earlier events of the writing thread.
        graph.causality(slot)
    }
}

impl TotalStoreOrder {
    fn widen(&mut self, graph: &Graph) {
        self.reads.widen(2 * graph.threads());
        self.writes.widen(2 * graph.threads());
    }

    /// Sets the clocks of `slot` once more. True if they have grown.
    fn collect_anew(&mut self, graph: &Graph, slot: Slot) -> bool {
        let before = self.total(slot);
        self.collect(graph, slot);
        self.total(slot) != before
    }

    /// Grows whenever one of the clocks of `slot` does.
    fn total(&self, slot: Slot) -> u32 {
        let both = self.reads.of(slot).iter().chain(self.writes.of(slot));
        both.sum()
    }

    /// Sets the clocks of `slot` from those of its direct predecessors. True if one of these was added
    /// after it.
    fn collect(&mut self, graph: &Graph, slot: Slot) -> bool {
        let event = graph.event(slot);
        let chain = chain(event);
        // For an event of both chains, the clock of the writes is enough.
        let reads = chain != Chain::Both;
        match graph.predecessor(event.id) {
            Some(previous) => {
                self.writes.copy(slot, previous);
                if reads {
                    self.reads.copy(slot, previous);
                }
            }
            None => {
                self.writes.of_mut(slot).fill(0);
                self.reads.of_mut(slot).fill(0);
            }
        }
        let own = event.id.thread;
        let count = event.id.index + 1;
        let later = if chain == Chain::Neither {
            false
        } else if event.kind.writes() {
            self.writes.of_mut(slot)[writes_of(own)] = count;
            self.collect_overwritten(graph, slot)
        } else {
            self.writes.of_mut(slot)[reads_of(own)] = count;
            if reads {
                self.reads.of_mut(slot)[reads_of(own)] = count;
            }
            self.collect_read_or_joined(graph, slot, reads)
        };
        if !reads {
            self.reads.set(slot, self.writes.of(slot));
        }
        later
    }

    /// co and fr
    fn collect_overwritten(&mut self, graph: &Graph, slot: Slot) -> bool {
        let Some(location) = graph.event(slot).op.location() else {
            return false;
        };
        let mut later = false;
        let overwritten = graph.write_at(location, graph.position(location, slot) - 1);
        if overwritten != INIT {
            self.writes.join(slot, overwritten);
            later |= overwritten > slot;
        }
        for read in graph.readers(location, overwritten) {
            self.writes.join_with(slot, self.reads.of(read));
            later |= read > slot;
        }
        later
    }

    /// rfe and joins
    fn collect_read_or_joined(&mut self, graph: &Graph, slot: Slot, reads: bool) -> bool {
        let event = graph.event(slot);
        match event.op {
            Op::Join { child } => self.join(graph, slot, child),
            Op::JoinAll => {
                let mut later = false;
                for child in (0..graph.threads() as u32).map(ThreadId) {
                    if child != event.id.thread {
                        later |= self.join(graph, slot, child);
                    }
                }
                later
            }
            _ if event.kind.reads() && is_external(graph, event) => {
                if reads {
                    self.reads.join_with(slot, self.writes.of(event.source));
                }
                self.writes.join(slot, event.source);
                event.source > slot
            }
            _ => false,
        }
    }

    fn join(&mut self, graph: &Graph, slot: Slot, child: ThreadId) -> bool {
        let Some(last) = graph.last(child) else {
            return false;
        };
        self.writes.join(slot, last);
        last > slot
    }

    /// Follows the one edge that may leave `slot` for an older event.
    fn propagate(&mut self, graph: &Graph, slot: Slot) {
        let event = graph.event(slot);
        let Some(location) = event.op.location() else {
            return;
        };
        let writes = event.kind.writes();
        let from = if writes { slot } else { event.source };
        let coherence = graph.coherence(location);
        let Some(&target) = coherence.get(graph.position(location, from)) else {
            return;
        };
        let id = graph.event(target).id;
        for later in (0..graph.len() as Slot).filter(|&later| later != slot) {
            if !counts_write(self.writes.of(later), id) {
                continue;
            }
            self.reads_trail.save(&self.reads, later, slot);
            self.writes_trail.save(&self.writes, later, slot);
            let also_reads = counts_write(self.reads.of(later), id);
            if writes {
                self.writes.join(later, slot);
                if also_reads {
                    self.reads.join_with(later, self.writes.of(slot));
                }
            } else {
                self.writes.join_with(later, self.reads.of(slot));
                if also_reads {
                    self.reads.join(later, slot);
                }
            }
        }
    }
}
