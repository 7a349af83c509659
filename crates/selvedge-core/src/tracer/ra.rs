//! Release-acquire: for each location, program order, reads-from, coherence and from-reads of that
//! location together have no cycle (Abdulla et al., "Optimal Stateless Model Checking under the
//! Release-Acquire Semantics", Definition 3.1), and nothing comes between an update and its source.
//!
//! Instead of a total coherence order, only the part is kept that every coherence order must have:
//! the *saturated* trace of §4. Two rules give this part, for a location:
//! * if another write `w` happens before a read of `c`, then `w` comes before `c`;
//! * an update that reads `c` comes directly after `c`.
//!
//! By the second rule a write and the updates that follow it form one block, a *chain*, and it is
//! enough to order chains. Their order is kept transitively closed, so a read may read `c` iff no
//! chain that it knows (one with a write that happens before the read) comes after the chain of `c`.
//! Writes need no check. The rules are complete: every total order of the chains that extends theirs
//! is a coherence order. Locations do not interact.

use super::consistency::{Consistency, Newest};
use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};

/// Saturated traces under release-acquire.
#[derive(Clone, Debug, Default)]
pub struct SaturatedRa {
    locations: Vec<PerLocation>,
    /// The place of each write, by slot.
    places: Vec<Place>,
    /// The length of `trail` before the event in each slot was added.
    marks: Vec<usize>,
    trail: Vec<Overwritten>,
    /// Scratch: the chains that a new event knows, then also all chains before them.
    known: Vec<u64>,
}

#[derive(Clone, Debug)]
struct PerLocation {
    /// Chain 0 begins with the initial write. Those from `used` on are kept for their memory.
    chains: Vec<Chain>,
    used: usize,
}

#[derive(Clone, Debug, Default)]
struct Chain {
    length: u32,
    /// The chains before it, as a bit set; missing words are empty.
    before: Vec<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    chain: u32,
    position: u32,
}

/// The old value of a word of a bit set.
#[derive(Clone, Copy, Debug)]
struct Overwritten {
    location: Location,
    chain: u32,
    word: u32,
    old: u64,
}

const INITIAL: Place = Place {
    chain: 0,
    position: 0,
};

impl Consistency for SaturatedRa {
    fn sources(&mut self, graph: &Graph, thread: ThreadId, at: Location, sources: &mut Vec<Slot>) {
        self.touch(at);
        sources.clear();
        let PerLocation { chains, used } = &mut self.locations[at.index()];
        let clock = graph.last(thread).map(|slot| graph.causality(slot));
        let writes = graph.coherence(at);
        if *used == 1 {
            // All writes are updates, one after the other: the newest known one is the oldest
            // readable one.
            let newest = clock.and_then(|clock| latest(graph, clock, writes));
            if newest.is_none() {
                sources.push(INIT);
            }
            sources.extend_from_slice(&writes[newest.unwrap_or(0)..]);
            return;
        }
        self.known.clear();
        self.known.resize(used.div_ceil(64), 0);
        // A chain before a known chain is not readable, nor an earlier write of a known chain.
        let mut oldest = Place::default();
        if let Some(clock) = clock {
            for &write in writes {
                if graph.counted(clock, write) {
                    let place = self.places[write as usize];
                    let before = &chains[place.chain as usize].before;
                    for (known, before) in self.known.iter_mut().zip(before) {
                        *known |= before;
                    }
                    if place.chain != oldest.chain || place.position > oldest.position {
                        oldest = place;
                    }
                }
            }
        }
        let readable = |place: Place| {
            let passed = place.chain == oldest.chain && place.position < oldest.position;
            !passed && !contains(&self.known, place.chain)
        };
        if readable(INITIAL) {
            sources.push(INIT);
        }
        let readable = |write: &&Slot| readable(self.places[**write as usize]);
        sources.extend(writes.iter().filter(readable));
    }

    fn added(&mut self, graph: &Graph, slot: Slot) -> bool {
        self.marks.push(self.trail.len());
        self.places.push(INITIAL);
        let event = graph.event(slot);
        let Some(at) = event.op.location() else {
            return true;
        };
        self.touch(at);
        match event.kind {
            Kind::Read | Kind::ReadHalf | Kind::Parked => self.read(graph, slot, at),
            Kind::Write => {
                self.begin_chain(graph, slot, at);
                true
            }
            Kind::WriteHalf => {
                let source = graph.event(slot - 1).source;
                let chain = self.place(source).chain;
                let length = &mut self.locations[at.index()].chains[chain as usize].length;
                let position = *length;
                *length += 1;
                self.places[slot as usize] = Place { chain, position };
                true
            }
            Kind::Silent => true,
        }
    }

    fn undo(&mut self, graph: &Graph, events: usize) {
        while self.marks.len() > events {
            let mark = self.marks.pop().unwrap_or_default();
            let place = self.places.pop().unwrap_or_default();
            for change in self.trail.drain(mark..).rev() {
                let chains = &mut self.locations[change.location.index()].chains;
                chains[change.chain as usize].before[change.word as usize] = change.old;
            }
            let event = graph.event(self.marks.len() as Slot);
            let Some(at) = event.op.location() else {
                continue;
            };
            let location = &mut self.locations[at.index()];
            match event.kind {
                Kind::Write => location.used -= 1,
                Kind::WriteHalf => location.chains[place.chain as usize].length -= 1,
                _ => {}
            }
        }
    }

    fn newest(&self, graph: &Graph, at: Location) -> Option<Slot> {
        let Some(PerLocation { chains, used }) = self.locations.get(at.index()) else {
            return Some(INIT);
        };
        let last = chains[..*used].iter().position(|chain| {
            let before: u32 = chain.before.iter().map(|word| word.count_ones()).sum();
            before as usize + 1 == *used
        })?;
        let end = Place {
            chain: last as u32,
            position: chains[last].length - 1,
        };
        let mut writes = graph.coherence(at).iter().copied();
        match writes.find(|&write| self.places[write as usize] == end) {
            None => Some(INIT),
            write => write,
        }
    }

    fn orders(&mut self, graph: &Graph, newest: &[Newest]) -> Option<Vec<(Location, Vec<Slot>)>> {
        let locations = graph.locations().iter();
        locations
            .map(|&at| {
                let wanted = newest.iter().find(|(location, _)| *location == at);
                self.order(graph, at, wanted.map(|&(_, write)| write))
                    .map(|order| (at, order))
            })
            .collect()
    }
}

impl SaturatedRa {
    fn touch(&mut self, at: Location) {
        if self.locations.len() <= at.index() {
            let first = Chain {
                length: 1,
                before: Vec::new(),
            };
            let untouched = PerLocation {
                chains: vec![first],
                used: 1,
            };
            self.locations.resize(at.index() + 1, untouched);
        }
    }

    fn place(&self, write: Slot) -> Place {
        match write {
            INIT => INITIAL,
            write => self.places[write as usize],
        }
    }

    fn read(&mut self, graph: &Graph, slot: Slot, at: Location) -> bool {
        let event = graph.event(slot);
        let source = self.place(event.source);
        let location = &self.locations[at.index()];
        if event.kind == Kind::ReadHalf
            && source.position + 1 != location.chains[source.chain as usize].length
        {
            return false;
        }
        let clock = graph.causality(slot);
        let writes = graph.coherence(at);
        if location.used == 1 {
            let newest = latest(graph, clock, writes).map(|newest| writes[newest]);
            return newest
                .is_none_or(|newest| self.places[newest as usize].position <= source.position);
        }
        self.known.clear();
        self.known.resize(location.used.div_ceil(64), 0);
        for &write in writes {
            if !graph.counted(clock, write) {
                continue;
            }
            let place = self.places[write as usize];
            if place.chain != source.chain {
                insert(&mut self.known, place.chain);
            } else if place.position > source.position {
                return false;
            }
        }
        close(&mut self.known, &location.chains);
        if contains(&self.known, source.chain) {
            return false;
        }
        self.order_known_before(at, source.chain);
        true
    }

    /// Orders every known chain before `chain` and before all chains after it.
    fn order_known_before(&mut self, at: Location, chain: u32) {
        let PerLocation { chains, used } = &mut self.locations[at.index()];
        if subset(&self.known, &chains[chain as usize].before) {
            return;
        }
        for (number, later) in chains[..*used].iter_mut().enumerate() {
            if number != chain as usize && !contains(&later.before, chain) {
                continue;
            }
            if later.before.len() < self.known.len() {
                later.before.resize(self.known.len(), 0);
            }
            for (word, (before, &known)) in later.before.iter_mut().zip(&self.known).enumerate() {
                if known & !*before != 0 {
                    self.trail.push(Overwritten {
                        location: at,
                        chain: number as u32,
                        word: word as u32,
                        old: *before,
                    });
                    *before |= known;
                }
            }
        }
    }

    /// Begins a chain with a store. It comes after all chains that the store knows.
    fn begin_chain(&mut self, graph: &Graph, slot: Slot, at: Location) {
        let PerLocation { chains, used } = &mut self.locations[at.index()];
        let clock = graph.causality(slot);
        self.known.clear();
        self.known.resize(used.div_ceil(64), 0);
        self.known[0] = 1;
        for &write in graph.coherence(at) {
            if write != slot && graph.counted(clock, write) {
                insert(&mut self.known, self.places[write as usize].chain);
            }
        }
        close(&mut self.known, chains);
        if chains.len() == *used {
            chains.push(Chain::default());
        }
        let chain = &mut chains[*used];
        chain.length = 1;
        chain.before.clone_from(&self.known);
        self.places[slot as usize] = Place {
            chain: *used as u32,
            position: 0,
        };
        *used += 1;
    }

    /// A total order of the writes to one location in which `newest` is last.
    fn order(&self, graph: &Graph, at: Location, newest: Option<Slot>) -> Option<Vec<Slot>> {
        let PerLocation { chains, used } = self.locations.get(at.index())?;
        let chains = &chains[..*used];
        let last = newest.map(|write| self.place(write));
        if let Some(last) = last {
            let ends = chains[last.chain as usize].length == last.position + 1;
            let followed = chains.iter().any(|c| contains(&c.before, last.chain));
            if !ends || followed {
                return None;
            }
        }
        // The number of chains before a chain grows along the order.
        let rank = |chain: u32| {
            let before = &chains[chain as usize].before;
            let count: u32 = before.iter().map(|word| word.count_ones()).sum();
            let is_last = last.is_some_and(|last| last.chain == chain);
            (is_last, count, chain)
        };
        let mut order = graph.coherence(at).to_vec();
        order.sort_by_key(|&write| {
            let place = self.places[write as usize];
            (rank(place.chain), place.position)
        });
        Some(order)
    }
}

/// The index of the last of `writes`, in the order of addition, that `clock` counts.
fn latest(graph: &Graph, clock: &[u32], writes: &[Slot]) -> Option<usize> {
    writes
        .iter()
        .rposition(|&write| graph.counted(clock, write))
}

fn insert(set: &mut [u64], chain: u32) {
    set[chain as usize / 64] |= 1 << (chain % 64);
}

fn contains(set: &[u64], chain: u32) -> bool {
    let word = set.get(chain as usize / 64).copied().unwrap_or(0);
    word & (1 << (chain % 64)) != 0
}

fn subset(one: &[u64], other: &[u64]) -> bool {
    let other = other.iter().copied().chain(std::iter::repeat(0));
    one.iter().zip(other).all(|(&one, other)| one & !other == 0)
}

/// Adds to `set` all chains before its members.
fn close(set: &mut [u64], chains: &[Chain]) {
    for word in 0..set.len() {
        let mut members = set[word];
        while members != 0 {
            let chain = word * 64 + members.trailing_zeros() as usize;
            members &= members - 1;
            for (set, &before) in set.iter_mut().zip(&chains[chain].before) {
                *set |= before;
            }
        }
    }
}
