//! Cutting a graph down for a backward revisit.

use super::{Graph, INIT, Kind, NONE, Next, Slot};

impl Graph {
    /// Makes `self` the part of `from` that a revisit of `read` keeps: what was added before
    /// `read`, `read` itself, and of the rest what `prefix` counts.
    ///
    /// `read` keeps its place in the order of addition but loses its source: it reads from nothing
    /// until [`rebind`](Graph::rebind) is called. Returns its new slot.
    pub fn restrict(&mut self, from: &Graph, read: Slot, prefix: &[u32]) -> Slot {
        self.keep(from, read, &|slot| {
            slot <= read || from.counted(prefix, slot)
        });
        read
    }

    /// Makes `self` the part of `from` that `ends` counts, which has the causes of each of its events.
    pub(crate) fn restrict_to(&mut self, from: &Graph, ends: &[u32]) {
        self.keep(from, NONE, &|slot| from.counted(ends, slot));
    }

    fn keep(&mut self, from: &Graph, read: Slot, kept: &impl Fn(Slot) -> bool) {
        self.clear();
        self.reserve_threads(from.threads());
        // Slots up to the read stay; behind it they move up, so the new slot of a kept event is
        // found by its place in its thread, which never changes: all that is kept of a thread is
        // a prefix of it.
        for slot in 0..from.len() as Slot {
            if !kept(slot) {
                continue;
            }
            let mut event = *from.event(slot);
            let new = self.events.len() as Slot;
            event.first_reader = NONE;
            event.next_reader = NONE;
            self.threads[event.id.thread.index()].events.push(new);
            if let crate::op::Op::Create { child } = event.op {
                self.threads[child.index()].creation = new;
            }
            self.events.push(event);
            self.causality.push(from.causality(slot));
        }
        for &location in &from.touched {
            self.restrict_location(from, location, read, kept);
        }
    }

    fn restrict_location(
        &mut self,
        from: &Graph,
        location: crate::ids::Location,
        read: Slot,
        kept: &impl Fn(Slot) -> bool,
    ) {
        let at = &from.locations[location.index()];
        let mut touched = false;
        for &write in at.coherence.iter().filter(|&&slot| kept(slot)) {
            if !std::mem::replace(&mut touched, true) {
                self.touch(location);
            }
            let new = self.moved(from, write);
            self.locations[location.index()].coherence.push(new);
        }
        for &old in at.reads.iter().filter(|&&slot| kept(slot)) {
            if !std::mem::replace(&mut touched, true) {
                self.touch(location);
            }
            let new = self.moved(from, old);
            self.locations[location.index()].reads.push(new);
            if old == read {
                self.events[new as usize].source = NONE;
                continue;
            }
            let source = match from.event(old).source {
                INIT => INIT,
                source if kept(source) => {
                    let before = from.event(old).woken_from.filter(|&write| kept(write));
                    let before = before.map(|write| self.moved(from, write));
                    self.events[new as usize].woken_from = before;
                    self.moved(from, source)
                }
                // Only what was woken can lose its source: it is parked again where it was.
                _ => {
                    let before = from.event(old).woken_from;
                    let before = before.expect("what is kept keeps its source unless it was woken");
                    let before = self.moved(from, before);
                    self.park(new, before);
                    before
                }
            };
            self.events[new as usize].source = source;
            self.link_reader(location, new, source);
        }
    }

    fn park(&mut self, slot: Slot, source: Slot) {
        let value = self.event(source).wrote;
        let event = &mut self.events[slot as usize];
        debug_assert!(event.kind == Kind::ReadHalf);
        event.kind = Kind::Parked;
        event.woken_from = None;
        event.next = Next::Unknown;
        event.read = value;
        event.wrote = 0;
        self.causality_of_read(slot, source);
    }

    /// The slot in `self` of the event that is in `slot` of `from`.
    fn moved(&self, from: &Graph, slot: Slot) -> Slot {
        let id = from.event(slot).id;
        self.threads[id.thread.index()].events[id.index as usize]
    }

    /// Lets the event in `slot`, which [`restrict`](Graph::restrict) left without a source, read
    /// from `source`, as `update` sets it up.
    pub fn rebind(&mut self, slot: Slot, source: Slot, update: impl FnOnce(&mut super::Event)) {
        let event = &mut self.events[slot as usize];
        debug_assert_eq!(event.source, NONE);
        event.source = source;
        event.next = Next::Unknown;
        update(event);
        let location = event.op.location().expect("only reads are revisited");
        self.link_reader(location, slot, source);
        self.causality_of_read(slot, source);
    }

    fn causality_of_read(&mut self, slot: Slot, source: Slot) {
        let id = self.event(slot).id;
        match self.predecessor(id) {
            Some(previous) => self.causality.copy(slot, previous),
            None => self.causality.of_mut(slot).fill(0),
        }
        self.causality.of_mut(slot)[id.thread.index()] = id.index + 1;
        self.causality.join(slot, source);
    }
}
