//! The alternatives to a write: its places in the coherence order, and the reads that it revisits.

use serde::{Deserialize, Serialize};

use super::Level;
use super::branch::{Positions, Reading, access, next_unglued};
use super::maximal::{hopeless, maximal, stable, wakes, wakes_by};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::model::Model;

/// Where a write may go.
#[derive(Clone, Copy, Debug)]
pub(super) enum WritePlace {
    /// Wherever the model allows: a store.
    Anywhere,
    /// Directly after what its read half read.
    After(Slot),
}

/// The places for a new write, and the reads it may revisit.
#[derive(Clone, Debug)]
pub(super) struct WriteBranch {
    pub(super) event: Event,
    pub(super) location: Location,
    place: WritePlace,
    left: Left,
}

/// The untried alternatives of a write, in terms of its graph.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Left {
    positions: Positions,
    /// Reads from here on downwards are to be looked at, none below `lowest`.
    scan: Slot,
    lowest: Slot,
    revisit: Option<Revisit>,
    revisiting: bool,
}

/// A read that is being revisited, and the places for the write that are left.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Revisit {
    read: Slot,
    positions: Positions,
}

impl WriteBranch {
    pub(super) fn new<C: Model>(
        level: &mut Level<C>,
        event: Event,
        location: Location,
        place: WritePlace,
    ) -> WriteBranch {
        let Level { graph, model, .. } = level;
        let previous = graph.last(event.id.thread);
        let positions = match place {
            WritePlace::Anywhere => {
                let oldest = model.oldest(graph, &access(&event, location, previous));
                let wakes = previous
                    .is_some_and(|p| wakes(graph, location, event.wrote, graph.causality(p)));
                let newest = graph.coherence(location).len();
                match newest.checked_sub(wakes.into()) {
                    Some(newest) => Positions::new(newest, oldest),
                    None => Positions::none(),
                }
            }
            WritePlace::After(source) => {
                let position = graph.position(location, source);
                Positions::new(position, position)
            }
        };
        let outside = |&&read: &&Slot| match previous {
            Some(previous) => !graph.counted(graph.causality(previous), read),
            None => true,
        };
        let lowest = graph.reads(location).iter().find(outside);
        let end = graph.len() as Slot;
        WriteBranch {
            event,
            location,
            place,
            left: Left {
                positions,
                scan: end,
                lowest: lowest.copied().unwrap_or(end),
                revisit: None,
                revisiting: false,
            },
        }
    }

    /// The rest of a write that another search has begun. It goes after `source` if that is given,
    /// what its read half has read.
    pub(super) fn of_left(
        event: Event,
        location: Location,
        source: Option<Slot>,
        left: Left,
    ) -> Self {
        WriteBranch {
            event,
            location,
            place: source.map_or(WritePlace::Anywhere, WritePlace::After),
            left,
        }
    }

    /// The untried alternatives.
    pub(super) fn left(&self) -> &Left {
        &self.left
    }

    /// At most this many alternatives are left.
    pub(super) fn untried(&self, graph: &Graph) -> usize {
        let Left {
            positions,
            scan,
            lowest,
            revisit,
            ..
        } = &self.left;
        let reads = graph.reads(self.location);
        let from = reads.partition_point(|read| read < lowest);
        let to = reads.partition_point(|read| read < scan);
        let begun = revisit
            .as_ref()
            .map_or(0, |revisit| revisit.positions.untried());
        positions.untried() + begun + to.saturating_sub(from)
    }

    pub(super) fn has_more(&self) -> bool {
        self.left.positions.next.is_some()
            || self.left.scan > self.left.lowest
            || self.left.revisit.is_some()
    }

    /// Whether the alternative taken last was a revisit.
    pub(super) fn revisiting(&self) -> bool {
        self.left.revisiting
    }

    /// The next place in the coherence order.
    pub(super) fn next_place(&mut self, graph: &Graph) -> Option<usize> {
        next_unglued(&mut self.left.positions, graph, self.location, 1)
            .map(|(position, _)| position)
    }

    /// Makes `above` the graph after the next revisit. If there was one, tells the read that was revisited and the
    /// thread that now owes a write half.
    pub(super) fn next_revisit<C: Model>(
        &mut self,
        below: &Level<C>,
        above: &mut Level<C>,
    ) -> Option<(Slot, Option<ThreadId>)> {
        let previous = below.graph.last(self.event.id.thread)?;
        let prefix = below.graph.causality(previous);
        loop {
            let mut revisit = match self.left.revisit.take() {
                Some(revisit) => {
                    cut(below, above, revisit.read, prefix);
                    revisit
                }
                None => {
                    let read = self.next_read(&below.graph, prefix)?;
                    cut(below, above, read, prefix);
                    let positions = self.places_after_cut(above, read);
                    Revisit { read, positions }
                }
            };
            let op = above.graph.event(revisit.read).op;
            let alternatives = Reading::of(op, self.event.wrote, 0).alternatives;
            let positions = &mut revisit.positions;
            let next = next_unglued(positions, &above.graph, self.location, alternatives);
            let Some((position, choice)) = next else {
                continue;
            };
            let read = revisit.read;
            if revisit.positions.next.is_some() {
                self.left.revisit = Some(revisit);
            }
            self.left.revisiting = true;
            // If nothing was deleted, slots mean the same in both graphs.
            let source = below.graph.event(read).source;
            let whole = above.graph.len() == below.graph.len();
            let known = source != INIT && below.graph.counted(prefix, source);
            let half = self.redirect(
                above,
                read,
                position,
                choice,
                (whole && known).then_some(source),
            );
            above.rebuild_overlay();
            stable(&above.graph, &mut above.stable);
            if !hopeless(&above.graph, &above.stable) {
                return Some((read, half));
            }
        }
    }

    /// The places at which both the write and the read that is to see it are consistent.
    fn places_after_cut<C: Model>(&self, above: &mut Level<C>, read: Slot) -> Positions {
        let Level { graph, model, .. } = above;
        let before_write = graph.last(self.event.id.thread);
        let mut event = *graph.event(read);
        event.kind = Reading::of(event.op, self.event.wrote, 0).kind;
        let reader = access(&event, self.location, graph.predecessor(event.id));
        let writer = access(&self.event, self.location, before_write);
        let oldest = model
            .oldest(graph, &writer)
            .max(model.oldest(graph, &reader));
        match (self.place, before_write) {
            (WritePlace::After(_), Some(half)) => {
                let position = graph.position(self.location, graph.event(half).source);
                Positions::new(position, oldest.max(position))
            }
            _ => Positions::new(graph.coherence(self.location).len(), oldest),
        }
    }

    /// The next read, latest first, that may be revisited: it and everything that its revisit
    /// would delete was added maximally. One event that was not stands in the way of all
    /// earlier reads as well.
    fn next_read(&mut self, graph: &Graph, prefix: &[u32]) -> Option<Slot> {
        while self.left.scan > self.left.lowest {
            self.left.scan -= 1;
            let slot = self.left.scan;
            if graph.counted(prefix, slot) {
                continue;
            }
            if !maximal(graph, slot, prefix) {
                self.left.scan = self.left.lowest;
                return None;
            }
            let event = graph.event(slot);
            if event.kind.reads()
                && event.op.location() == Some(self.location)
                && !self.is_taken(graph, slot, prefix)
            {
                return Some(slot);
            }
        }
        None
    }

    /// Whether a revisit of `read` leaves an update in place that directly follows what the update of this write
    /// has read, so that there is no place for this one.
    fn is_taken(&self, graph: &Graph, read: Slot, prefix: &[u32]) -> bool {
        let WritePlace::After(source) = self.place else {
            return false;
        };
        let next = graph.position(self.location, source);
        graph.glued(self.location, next) && {
            let taker = graph.coherence(self.location)[next];
            taker <= read || graph.counted(prefix, taker)
        }
    }

    /// Adds the write to the cut graph and lets `read` see it. `parked_at` is what it read before,
    /// if nothing was cut and the write knows it.
    fn redirect<C: Model>(
        &self,
        above: &mut Level<C>,
        read: Slot,
        position: usize,
        choice: u32,
        parked_at: Option<Slot>,
    ) -> Option<ThreadId> {
        let newest = position == above.graph.coherence(self.location).len();
        let parked = above.graph.event(read).kind == Kind::Parked;
        let parked_at = parked_at.filter(|_| parked && newest);
        above.push_write(self.event, self.location, position);
        let write = above.graph.len() as Slot - 1;
        let reading = Reading::of(above.graph.event(read).op, self.event.wrote, choice);
        above.graph.rebind(read, write, |event| {
            event.kind = reading.kind;
            event.read = self.event.wrote;
            event.wrote = reading.wrote;
            event.choice = choice;
            event.woken_from = parked_at.filter(|_| wakes_by(event.op, self.event.wrote));
        });
        above.model.bound(&above.graph, read);
        let owes = reading.kind == Kind::ReadHalf;
        owes.then_some(above.graph.event(read).id.thread)
    }
}

fn cut<C: Model>(below: &Level<C>, above: &mut Level<C>, read: Slot, prefix: &[u32]) {
    above.clear();
    above.bounded = below.bounded;
    above.graph.restrict(&below.graph, read, prefix);
    above.model.rebuild(&above.graph, Some(read));
}
