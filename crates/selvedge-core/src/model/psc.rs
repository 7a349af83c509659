//! The SC axiom of RC11 (Lahav et al. 2017, §3.3): `psc = psc_base ∪ psc_F` has no cycle, where
//!
//! ```text
//! scb      = po ∪ po|≠loc; hb; po|≠loc ∪ hb|loc ∪ co ∪ fr
//! psc_base = ([SC] ∪ [F_SC]; hb?); scb; ([SC] ∪ hb?; [F_SC])
//! psc_F    = [F_SC]; (hb ∪ hb; eco; hb); [F_SC]
//! ```
//!
//! A new event has no `hb` successor, so a cycle through it leaves it by `fr` or `co`, for a write
//! that is newer than the one it reads or follows. An edge into the event through the write that it
//! reads or follows also leads to that newer write, by `co`. Hence only edges from its own thread
//! count, and if one position in the coherence order closes no cycle, no later
//! one does. The search below goes through the positions from the newest to the oldest and follows
//! `psc` from the writes passed by. The SC events of one thread are ordered by `psc`, so the set
//! reached is a suffix of each thread.
//!
//! Threads begin and end with an event of their own here, between creation and first event and between
//! the last event and a join: `po|≠loc` leads to them.

use super::{Access, order};
use crate::graph::{Clocks, Event, Graph, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::op::{MemoryOrder, Op};

/// The SC events of a graph, and scratch memory for the search.
#[derive(Clone, Debug, Default)]
pub(super) struct Psc {
    accesses: Vec<Slot>,
    fences: Vec<Slot>,
    /// Of each thread, the first SC event that is reached.
    reached: Vec<u32>,
    /// Of each thread, the first SC event whose successors are reached.
    followed: Vec<u32>,
}

const NOTHING: u32 = u32::MAX;

/// Where a cycle through the new event is taken to begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// At the event itself, which is SC.
    Event,
    /// At an SC fence that happens before it.
    Fence,
}

impl Psc {
    pub(super) fn clear(&mut self) {
        self.accesses.clear();
        self.fences.clear();
    }

    /// Whether `event` is SC decides whether it is kept. It may have been there before, with
    /// another order.
    pub(super) fn added(&mut self, event: &Event, slot: Slot) {
        if order(&event.op, event.kind) != MemoryOrder::SeqCst {
            return;
        }
        let all = match event.kind {
            Kind::Silent => &mut self.fences,
            _ => &mut self.accesses,
        };
        let at = all.partition_point(|&other| other < slot);
        all.insert(at, slot);
    }

    pub(super) fn undo(&mut self, events: Slot) {
        for all in [&mut self.accesses, &mut self.fences] {
            while all.last().is_some_and(|&last| last >= events) {
                all.pop();
            }
        }
    }

    /// The oldest position at which `access` closes no cycle, `coherent` or later.
    pub(super) fn oldest(
        &mut self,
        graph: &Graph,
        hb: &Clocks,
        access: &Access,
        coherent: usize,
    ) -> usize {
        let newest = graph.coherence(access.location).len();
        let Some(predecessor) = access.predecessor else {
            return coherent;
        };
        if coherent == newest {
            return coherent;
        }
        let mut oldest = coherent;
        if access.order() == MemoryOrder::SeqCst {
            oldest = self.descend(graph, hb, access, oldest, Start::Event);
        }
        let before = hb.of(predecessor);
        if self
            .fences
            .iter()
            .any(|&fence| graph.counted(before, fence))
        {
            oldest = self.descend(graph, hb, access, oldest, Start::Fence);
        }
        oldest
    }

    fn descend(
        &mut self,
        graph: &Graph,
        hb: &Clocks,
        access: &Access,
        oldest: usize,
        start: Start,
    ) -> usize {
        let coherence = graph.coherence(access.location);
        self.reached.clear();
        self.reached.resize(graph.threads(), NOTHING);
        self.followed.clear();
        self.followed.resize(graph.threads(), NOTHING);
        let mut search = Search {
            psc: self,
            graph,
            hb,
        };
        for position in (oldest + 1..=coherence.len()).rev() {
            let write = coherence[position - 1];
            search.end(write);
            if start == Start::Fence {
                for read in graph.readers(access.location, write) {
                    search.fences_after(read);
                }
            }
            search.close();
            if search.is_cycle(access, start) {
                return position;
            }
        }
        oldest
    }
}

struct Search<'a> {
    psc: &'a mut Psc,
    graph: &'a Graph,
    hb: &'a Clocks,
}

impl Search<'_> {
    fn happens_before(&self, earlier: Slot, later: Slot) -> bool {
        self.graph.counted(self.hb.of(later), earlier)
    }

    fn reach(&mut self, id: EventId) {
        let first = &mut self.psc.reached[id.thread.index()];
        *first = (*first).min(id.index);
    }

    fn is_reached(&self, id: EventId) -> bool {
        self.psc.reached[id.thread.index()] <= id.index
    }

    /// Ends an edge at `slot`: `[SC] ∪ hb?; [F_SC]`.
    fn end(&mut self, slot: Slot) {
        let event = self.graph.event(slot);
        if order(&event.op, event.kind) == MemoryOrder::SeqCst {
            self.reach(event.id);
        }
        self.fences_after(slot);
    }

    /// `hb; [F_SC]`.
    fn fences_after(&mut self, slot: Slot) {
        for index in 0..self.psc.fences.len() {
            let fence = self.psc.fences[index];
            if self.happens_before(slot, fence) {
                self.reach(self.graph.event(fence).id);
            }
        }
    }

    /// Follows all edges of whatever is reached.
    fn close(&mut self) {
        loop {
            let pairs = self.psc.reached.iter().zip(&self.psc.followed);
            let Some(thread) = pairs.into_iter().position(|(r, f)| r < f) else {
                return;
            };
            let first = self.psc.reached[thread];
            let events = self.graph.thread(ThreadId(thread as u32));
            let end = self.psc.followed[thread].min(events.len() as u32);
            self.psc.followed[thread] = first;
            for &slot in &events[first as usize..end as usize] {
                if self.psc.accesses.binary_search(&slot).is_ok() {
                    self.follow_access(slot);
                } else if self.psc.fences.binary_search(&slot).is_ok() {
                    self.follow_fence(slot);
                }
            }
        }
    }

    fn follow_access(&mut self, slot: Slot) {
        self.follow_communication(slot);
        let id = self.graph.event(slot).id;
        // po; hb?; [F_SC]
        for index in 0..self.psc.fences.len() {
            let fence = self.psc.fences[index];
            if self.hb.of(fence)[id.thread.index()] > id.index + 1 {
                self.reach(self.graph.event(fence).id);
            }
        }
        // po|≠loc; hb; po|≠loc
        let away = self.first_elsewhere(id);
        for thread in (0..self.graph.threads() as u32).map(ThreadId) {
            if thread != id.thread
                && let Some(first) = self.first_after(thread, (id.thread, away))
            {
                self.reach(first);
            }
        }
    }

    /// The first SC access of `thread` with an event at another location before it, in its thread or its
    /// creation, that comes after more than `count` events of `other` in happens-before.
    fn first_after(&self, thread: ThreadId, (other, count): (ThreadId, u32)) -> Option<EventId> {
        let (graph, hb) = (self.graph, self.hb);
        let events = graph.thread(thread);
        let comes_after = |slot: Slot| hb.of(slot)[other.index()] > count;
        let end = events.len().min(self.psc.reached[thread.index()] as usize);
        let last = *events[..end].last()?;
        if !comes_after(last) {
            return None;
        }
        // Clocks grow along a thread.
        let from = events.partition_point(|&slot| !comes_after(slot));
        let created = graph.predecessor(EventId { thread, index: 0 });
        let created = from == 0 && created.is_some_and(comes_after);
        let (mut seen, mut mixed) = (None, false);
        for &slot in &events[from..end] {
            let event = graph.event(slot);
            let location = event.op.location();
            let elsewhere = mixed || seen.is_some_and(|seen| seen != location);
            if (created || elsewhere) && self.psc.accesses.binary_search(&slot).is_ok() {
                return Some(event.id);
            }
            mixed = elsewhere;
            seen = Some(location);
        }
        None
    }

    /// The index of the first event after `id` in its thread that is not at its location; the thread's
    /// end is not.
    fn first_elsewhere(&self, id: EventId) -> u32 {
        let events = self.graph.thread(id.thread);
        let location = |slot: Slot| self.graph.event(slot).op.location();
        let own = location(events[id.index as usize]);
        let later = &events[id.index as usize + 1..];
        let same = later.iter().take_while(|&&slot| location(slot) == own);
        id.index + 1 + same.count() as u32
    }

    fn follow_fence(&mut self, fence: Slot) {
        for slot in 0..self.graph.len() as Slot {
            if slot == fence || !self.happens_before(fence, slot) {
                continue;
            }
            let event = self.graph.event(slot);
            match event.op {
                Op::Fence { .. } => self.end(slot),
                _ if event.op.location().is_some() => {
                    self.follow_communication(slot);
                    self.follow_readers(slot);
                }
                _ => {}
            }
        }
        // hb?; po
        for index in 0..self.psc.accesses.len() {
            let access = self.psc.accesses[index];
            let id = self.graph.event(access).id;
            let previous = self.graph.predecessor(id);
            if previous.is_some_and(|previous| self.happens_before(fence, previous)) {
                self.reach(id);
            }
        }
    }

    /// co ∪ fr ∪ hb|loc
    fn follow_communication(&mut self, slot: Slot) {
        let (graph, event) = (self.graph, self.graph.event(slot));
        let location = event.op.location().expect("an access has a location");
        for &later in graph.later_writes(location, written_or_read(event, slot)) {
            self.end(later);
        }
        for &read in graph.reads(location) {
            if read != slot && self.happens_before(slot, read) {
                self.end(read);
            }
        }
    }

    /// eco; hb; [F_SC], as far as the last step of eco is a reads-from.
    fn follow_readers(&mut self, slot: Slot) {
        let (graph, event) = (self.graph, self.graph.event(slot));
        let location = event.op.location().expect("an access has a location");
        let later = graph.later_writes(location, written_or_read(event, slot));
        let own = event.kind.writes().then_some(slot);
        for write in own.into_iter().chain(later.iter().copied()) {
            for read in graph.readers(location, write) {
                self.fences_after(read);
            }
        }
    }

    /// Whether something reached comes before the new event.
    fn is_cycle(&self, access: &Access, start: Start) -> bool {
        let graph = self.graph;
        let Some(predecessor) = access.predecessor else {
            return false;
        };
        let before = self.hb.of(predecessor);
        let reached = |slot: Slot| self.is_reached(graph.event(slot).id);
        let mut fences = self.psc.fences.iter();
        if fences.any(|&fence| graph.counted(before, fence) && reached(fence)) {
            return true;
        }
        if start == Start::Fence {
            return false;
        }
        // po
        if self.psc.reached[access.thread.index()] != NOTHING {
            return true;
        }
        // An edge by hb|loc, co or fr to the new event also leads to the newer write, so there would be a
        // cycle without the new event.
        // po|≠loc; hb; po|≠loc. The first event that is reached has the most events after it.
        let back = last_elsewhere(graph, access.predecessor, Some(access.location));
        back.is_some_and(|back| {
            let counts = self.hb.of(back).iter().zip(&self.psc.reached).enumerate();
            counts.into_iter().any(|(thread, (&count, &first))| {
                let thread = ThreadId(thread as u32);
                let index = first;
                first < count && count > self.first_elsewhere(EventId { thread, index })
            })
        })
    }
}

/// The value that a write writes or a read reads.
fn written_or_read(event: &Event, slot: Slot) -> Slot {
    if event.kind.reads() {
        event.source
    } else {
        slot
    }
}

/// The last of `from` and the events before it in its thread that is not at `location`; the thread's
/// creation is not, although it is an event of another thread.
fn last_elsewhere(graph: &Graph, from: Option<Slot>, location: Option<Location>) -> Option<Slot> {
    let mut back = from;
    while let Some(slot) = back {
        let event = graph.event(slot);
        if event.op.location() != location {
            break;
        }
        back = graph.predecessor(event.id);
    }
    back
}
