//! RC11: Lahav, Vafeiadis, Kang, Hur and Dreyer, "Repairing sequential consistency in C/C++11",
//! PLDI 2017, Definition 1, with the release sequences of C++20 (`rs = [W]; (rf; rmw)*`).
//!
//! ```text
//! sw  = [release]; ([F]; po)?; rs; rf; (po; [F])?; [acquire]
//! hb  = (po ∪ sw ∪ creations ∪ joins)⁺, initial writes first
//! irreflexive(hb; eco?)                                            coherence
//! rmw ∩ (fr; co) = ∅                                               atomicity, kept by the search
//! acyclic(psc)                                                     see psc.rs
//! acyclic(po ∪ rf)                                                 kept by the search
//! ```
//!
//! An event is added when nothing comes after it in `po ∪ rf`, so its clock over `hb` is final:
//! adding and undoing touch nothing else. A new event can break coherence in one way only:
//! something that was written over what it reads, or than it writes, was written or read by an
//! event that happens before it. Plain accesses are like relaxed ones here; that they race is found
//! elsewhere.

use super::psc::Psc;
use super::{Access, Model, in_causal_order, order};
use crate::graph::{Clocks, Event, Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::op::{MemoryOrder, Op};

/// The model `rc11`.
#[derive(Clone, Debug, Default)]
pub struct Rc11 {
    hb: Clocks,
    /// For each event, the last release fence of its thread up to it.
    release_fence: Vec<Option<Slot>>,
    psc: Psc,
    done: Vec<u32>,
}

/// Whether `event` is a release.
fn releases(event: &Event) -> bool {
    use MemoryOrder::{AcqRel, Release, SeqCst};
    matches!(order(&event.op, event.kind), Release | AcqRel | SeqCst)
}

/// Whether `event` is an acquire.
fn acquires(event: &Event) -> bool {
    use MemoryOrder::{AcqRel, Acquire, SeqCst};
    matches!(order(&event.op, event.kind), Acquire | AcqRel | SeqCst)
}

impl Model for Rc11 {
    fn clear(&mut self) {
        self.hb.truncate(0);
        self.release_fence.clear();
        self.psc.clear();
    }

    fn oldest(&mut self, graph: &Graph, access: &Access) -> usize {
        let Some(predecessor) = access.predecessor else {
            return 0;
        };
        self.hb.widen(graph.threads());
        let coherent = coherent(graph, self.hb.of(predecessor), access.location);
        self.psc.oldest(graph, &self.hb, access, coherent)
    }

    fn added(&mut self, graph: &Graph, slot: Slot) {
        self.hb.widen(graph.threads());
        self.hb.push_zero();
        self.release_fence.push(None);
        self.collect(graph, slot);
    }

    fn undo(&mut self, events: usize) {
        self.hb.truncate(events as Slot);
        self.release_fence.truncate(events);
        self.psc.undo(events as Slot);
    }

    fn rebuild(&mut self, graph: &Graph, unbound: Option<Slot>) {
        self.clear();
        self.hb.widen(graph.threads());
        for _ in 0..graph.len() {
            self.hb.push_zero();
        }
        self.release_fence.resize(graph.len(), None);
        let mut done = std::mem::take(&mut self.done);
        in_causal_order(graph, unbound, &mut done, |slot| self.collect(graph, slot));
        self.done = done;
    }

    fn bound(&mut self, graph: &Graph, slot: Slot) {
        self.collect(graph, slot);
    }

    fn happens_before<'a>(&'a self, _graph: &'a Graph, slot: Slot) -> &'a [u32] {
        self.hb.of(slot)
    }
}

/// The oldest position that an event after what `before` counts may read or follow.
fn coherent(graph: &Graph, before: &[u32], location: Location) -> usize {
    let coherence = graph.coherence(location);
    for position in (1..=coherence.len()).rev() {
        let write = coherence[position - 1];
        let mut readers = graph.readers(location, write);
        if graph.counted(before, write) || readers.any(|read| graph.counted(before, read)) {
            return position;
        }
    }
    0
}

impl Rc11 {
    /// Sets the clock of `slot`, whose causes have theirs.
    fn collect(&mut self, graph: &Graph, slot: Slot) {
        let event = graph.event(slot);
        let thread = event.id.thread.index();
        match graph.predecessor(event.id) {
            Some(previous) => self.hb.copy(slot, previous),
            None => self.hb.of_mut(slot).fill(0),
        }
        self.hb.of_mut(slot)[thread] = event.id.index + 1;
        self.release_fence[slot as usize] = match event.id.index {
            0 => None,
            index => {
                let previous = graph.thread(event.id.thread)[index as usize - 1];
                self.release_fence[previous as usize]
            }
        };
        match event.op {
            Op::Join { child } => self.join(graph, slot, child),
            Op::JoinAll => {
                for child in (0..graph.threads() as u32).map(ThreadId) {
                    if child != event.id.thread {
                        self.join(graph, slot, child);
                    }
                }
            }
            Op::Fence { .. } => {
                if acquires(event) {
                    self.acquire_earlier(graph, slot);
                }
                if releases(event) {
                    self.release_fence[slot as usize] = Some(slot);
                }
            }
            _ if event.kind.reads() && acquires(event) => self.acquire(graph, slot, event.source),
            _ => {}
        }
        self.psc.added(event, slot);
    }

    /// A joined thread's last steps come after its last event, hence the one more.
    fn join(&mut self, graph: &Graph, slot: Slot, child: ThreadId) {
        if let Some(last) = graph.last(child) {
            self.hb.join(slot, last);
            let ended = graph.thread(child).len() as u32 + 1;
            self.hb.of_mut(slot)[child.index()] = ended;
        }
    }

    /// Lets what is released by `write`, or by one that it continues the release sequence of, happen
    /// before `slot`.
    fn acquire(&mut self, graph: &Graph, slot: Slot, mut write: Slot) {
        while write != INIT {
            let event = graph.event(write);
            let released = releases(event);
            if released {
                self.hb.join(slot, write);
            } else if let Some(fence) = self.release_fence[write as usize] {
                self.hb.join(slot, fence);
            }
            if event.kind != Kind::WriteHalf || (released && acquires(event)) {
                return;
            }
            let half = graph.thread(event.id.thread)[event.id.index as usize - 1];
            write = graph.event(half).source;
        }
    }

    /// Lets the acquire fence in `slot` synchronise with what its thread has read so far.
    fn acquire_earlier(&mut self, graph: &Graph, slot: Slot) {
        let id = graph.event(slot).id;
        for &earlier in graph.thread(id.thread)[..id.index as usize].iter().rev() {
            let event = graph.event(earlier);
            match event.op {
                // The clock of that fence contains all earlier reads.
                Op::Fence { .. } if acquires(event) => return,
                _ if event.kind.reads() => self.acquire(graph, slot, event.source),
                _ => {}
            }
        }
    }
}
