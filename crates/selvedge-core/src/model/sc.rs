//! Sequential consistency: program order, reads-from, coherence and from-reads together have no
//! cycle (Marmanis et al., "Reconciling Preemption Bounding with DPOR", §2.3).
//!
//! For each event one vector clock over that union is kept closed. A new event has at most one
//! outgoing edge that is not implied by others: a stale read comes before the write that
//! overwrote its source, a write placed inside the coherence order comes before the next one. So
//! * an event after `p` may read or follow a write `w` iff the next write after `w` does not
//!   already come before `p`: the possible positions are a suffix of the coherence order;
//! * after adding such an event, exactly the events after the target of that edge gain what the
//!   new event has, in one pass.

use super::{Access, Model};
use crate::graph::{ClockTrail, Clocks, Graph, INIT, Slot};
use crate::ids::ThreadId;
use crate::op::Op;

/// The model `sc`.
#[derive(Clone, Debug, Default)]
pub struct SequentialConsistency {
    order: Clocks,
    trail: ClockTrail,
    done: Vec<u32>,
}

impl Model for SequentialConsistency {
    fn clear(&mut self) {
        self.order.truncate(0);
        self.trail.clear();
    }

    fn oldest(&mut self, graph: &Graph, access: &Access) -> usize {
        let Some(predecessor) = access.predecessor else {
            return 0;
        };
        let before = self.order.of(predecessor);
        let coherence = graph.coherence(access.location);
        let seen = coherence
            .iter()
            .rposition(|&write| graph.counted(before, write));
        seen.map_or(0, |index| index + 1)
    }

    fn added(&mut self, graph: &Graph, slot: Slot) {
        self.order.widen(graph.threads());
        self.order.push_zero();
        self.collect(graph, slot);
        self.propagate(graph, slot);
    }

    fn undo(&mut self, events: usize) {
        self.trail.undo(&mut self.order, events);
        self.order.truncate(events as Slot);
    }

    fn rebuild(&mut self, graph: &Graph, unbound: Option<Slot>) {
        let left = self.follow(graph, unbound);
        assert!(
            left <= usize::from(unbound.is_some()),
            "a part of a consistent graph is consistent"
        );
    }

    fn bound(&mut self, graph: &Graph, slot: Slot) {
        self.collect(graph, slot);
        self.propagate(graph, slot);
    }

    fn linear_order<'a>(&'a self, _graph: &'a Graph, slot: Slot) -> &'a [u32] {
        self.order.of(slot)
    }

    fn sequential(&self) -> Option<&SequentialConsistency> {
        Some(self)
    }

    fn happens_before<'a>(&'a self, graph: &'a Graph, slot: Slot) -> &'a [u32] {
        // Every access is a release and an acquire, so causality is happens-before.
        graph.causality(slot)
    }
}

impl SequentialConsistency {
    /// The events before each event, itself included.
    pub(crate) fn clocks(&self) -> &Clocks {
        &self.order
    }

    /// For a graph of a weaker model: like [`added`](Model::added), unless the event in `slot`
    /// closes a cycle. Then nothing is added and the answer is false.
    pub(crate) fn added_unless_cyclic(&mut self, graph: &Graph, slot: Slot) -> bool {
        self.order.widen(graph.threads());
        self.order.push_zero();
        self.collect(graph, slot);
        let cyclic =
            next_write(graph, slot).is_some_and(|next| graph.counted(self.order.of(slot), next));
        if cyclic {
            self.order.truncate(slot);
            return false;
        }
        self.propagate(graph, slot);
        true
    }

    /// For a graph of a weaker model: whether it is consistent under this one, with the clocks of all
    /// events if so.
    pub(crate) fn rebuild_if_consistent(&mut self, graph: &Graph) -> bool {
        self.follow(graph, None) == 0
    }

    /// Makes the clocks anew, of each event after those that come before it. Returns how many
    /// events are left that have none: `unbound`, what follows it, and what is on cycles.
    fn follow(&mut self, graph: &Graph, unbound: Option<Slot>) -> usize {
        self.clear();
        self.order.widen(graph.threads());
        for _ in 0..graph.len() {
            self.order.push_zero();
        }
        self.done.clear();
        self.done.resize(graph.threads(), 0);
        let mut left = graph.len();
        loop {
            let before = left;
            for thread in 0..graph.threads() {
                let events = graph.thread(ThreadId(thread as u32));
                while let Some(&slot) = events.get(self.done[thread] as usize) {
                    if Some(slot) == unbound || !self.ready(graph, slot) {
                        break;
                    }
                    self.collect(graph, slot);
                    self.done[thread] += 1;
                    left -= 1;
                }
            }
            if left == before || left == 0 {
                return left;
            }
        }
    }

    /// Sets the clock of `slot` from those of its direct predecessors.
    fn collect(&mut self, graph: &Graph, slot: Slot) {
        let event = graph.event(slot);
        match graph.predecessor(event.id) {
            Some(previous) => self.order.copy(slot, previous),
            None => self.order.of_mut(slot).fill(0),
        }
        self.order.of_mut(slot)[event.id.thread.index()] = event.id.index + 1;
        match event.op {
            Op::Join { child } => self.collect_thread(graph, slot, child),
            Op::JoinAll => {
                for thread in 0..graph.threads() as u32 {
                    self.collect_thread(graph, slot, ThreadId(thread));
                }
            }
            _ => {}
        }
        let Some(location) = event.op.location() else {
            return;
        };
        if event.kind.reads() {
            if event.source != INIT {
                self.order.join(slot, event.source);
            }
            return;
        }
        let overwritten = graph.write_at(location, graph.position(location, slot) - 1);
        if overwritten != INIT {
            self.order.join(slot, overwritten);
        }
        for reader in graph.readers(location, overwritten) {
            self.order.join(slot, reader);
        }
    }

    fn collect_thread(&mut self, graph: &Graph, slot: Slot, child: ThreadId) {
        if let Some(last) = graph.last(child)
            && last != slot
        {
            self.order.join(slot, last);
        }
    }

    /// Follows the one edge that may leave `slot` for an older event.
    fn propagate(&mut self, graph: &Graph, slot: Slot) {
        let Some(target) = next_write(graph, slot) else {
            return;
        };
        let id = graph.event(target).id;
        for later in 0..graph.len() as Slot {
            let clock = self.order.of(later);
            if clock[id.thread.index()] > id.index && later != slot {
                self.trail.save(&self.order, later, slot);
                self.order.join(later, slot);
            }
        }
    }

    /// Whether every direct predecessor of `slot` has its clock.
    fn ready(&self, graph: &Graph, slot: Slot) -> bool {
        if !graph.causes_counted(&self.done, slot) {
            return false;
        }
        let event = graph.event(slot);
        let Some(location) = event.op.location() else {
            return true;
        };
        if event.kind.reads() {
            return true;
        }
        let done = |slot: Slot| slot == INIT || graph.counted(&self.done, slot);
        let overwritten = graph.write_at(location, graph.position(location, slot) - 1);
        done(overwritten) && graph.readers(location, overwritten).all(done)
    }
}

/// The write that overwrites what the event in `slot` reads or writes.
fn next_write(graph: &Graph, slot: Slot) -> Option<Slot> {
    let event = graph.event(slot);
    let location = event.op.location()?;
    let from = match event.kind.reads() {
        true => event.source,
        false => slot,
    };
    let position = graph.position(location, from);
    graph.coherence(location).get(position).copied()
}
