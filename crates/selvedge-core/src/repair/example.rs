//! A failing execution, and whether it is still one when the program is changed.

use super::change::{Change, Changed, Way, has_order};
use crate::failure::{Failure, FailureKind};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::{Machine, Outcome, Pending, Stop};
use crate::model::{Access, Model};
use crate::op::{Function, Op};
use crate::report::Bug;
use crate::witness::Origin;

/// An execution that fails, without the new fences that the program had when it was found.
pub(super) struct Example {
    moves: Vec<Move>,
    /// The accesses and fences in it, each place once.
    pub(super) sites: Vec<(Site, Op)>,
    pub(super) failure: Failure,
}

/// A step of it.
struct Move {
    thread: ThreadId,
    outcome: Outcome,
    /// The move that it reads from, if it reads; the inner `None` stands for the initial value.
    source: Option<Option<usize>>,
    writes: bool,
    /// How many of the writes before it are newer than what it reads or writes.
    newer: usize,
}

impl Example {
    /// Takes it from a bug that was found with `changes`. `None` if it cannot be repeated.
    pub(super) fn new<M: Machine>(
        machine: &mut M,
        changes: &[Change],
        bug: &Bug,
    ) -> Option<Example> {
        let mut moves: Vec<Move> = Vec::new();
        let mut sites: Vec<(Site, Op)> = Vec::new();
        let mut machine = Changed::new(machine, changes);
        machine.reset();
        // An unlock looks like any store.
        let is_object = |at: Location| {
            let mut steps = bug.witness.steps.iter();
            steps.any(|step| step.op.location() == Some(at) && is_guarded(&step.op))
        };
        // Where in `moves` each step of the witness is.
        let mut place = Vec::new();
        for step in &bug.witness.steps {
            let Pending::Op(op) = machine.original(step.thread) else {
                return None;
            };
            place.push(moves.len());
            if !machine.has_new_fence(step.thread) {
                let site = machine.site(step.thread);
                let is_own = has_order(&op) && !op.location().is_some_and(is_object);
                if is_own && sites.iter().all(|&(known, _)| known != site) {
                    sites.push((site, op));
                }
                moves.push(Move {
                    thread: step.thread,
                    outcome: step.outcome(),
                    source: step.origin.map(|origin| match origin {
                        Origin::Initial => None,
                        Origin::Step(step) => Some(place[step as usize]),
                    }),
                    writes: step.wrote.is_some(),
                    newer: step.newer.len(),
                });
            }
            machine.resume(step.thread, step.outcome(), &step.clock);
        }
        Some(Example {
            moves,
            sites,
            failure: bug.failure.clone(),
        })
    }

    /// Whether some order in it could be raised.
    pub(super) fn has_weak_orders(&self) -> bool {
        let mut ops = self.sites.iter().map(|&(_, op)| op);
        ops.any(|op| !Way::orders(op).is_empty())
    }

    /// Whether `C` allows it with `changes`, and it fails.
    pub(super) fn fails<C: Model, M: Machine>(&self, machine: &mut M, changes: &[Change]) -> bool {
        let mut machine = Changed::new(machine, changes);
        machine.reset();
        let mut replica = Replica::<C>::default();
        let mut slots: Vec<Slot> = Vec::with_capacity(self.moves.len());
        for step in &self.moves {
            let slot = loop {
                replica.graph.reserve_threads(machine.threads());
                let Pending::Op(op) = machine.pending(step.thread) else {
                    return false;
                };
                let new_fence = machine.has_new_fence(step.thread);
                let slot = match op.location() {
                    Some(at) if !new_fence => replica.access(step, op, at, &slots),
                    _ => Some(replica.silent(step, op)),
                };
                let Some(slot) = slot else {
                    return false;
                };
                let clock = replica.model.happens_before(&replica.graph, slot);
                machine.resume(step.thread, step.outcome, clock);
                if !new_fence {
                    break slot;
                }
            };
            slots.push(slot);
            if machine.pending(step.thread) == Pending::Stopped(Stop::Failed) {
                break;
            }
        }
        match self.failure.kind {
            // Waiting does not depend on memory orders.
            FailureKind::Deadlock | FailureKind::Livelock => true,
            kind => {
                let failure = machine.failure().or_else(|| machine.leftover());
                failure.is_some_and(|failure| failure.kind == kind)
            }
        }
    }
}

fn is_guarded(op: &Op) -> bool {
    let Op::Update { function, .. } = op else {
        return false;
    };
    matches!(function, Function::Object(_))
}

/// The graph of an execution, as far as it has been repeated.
#[derive(Default)]
struct Replica<C> {
    graph: Graph,
    model: C,
}

impl<C: Model> Replica<C> {
    fn silent(&mut self, step: &Move, op: Op) -> Slot {
        let event = Event::new(self.graph.next_id(step.thread), Kind::Silent, op);
        let slot = self.graph.push_silent(event);
        self.model.added(&self.graph, slot);
        slot
    }

    /// Adds what `step` does to its location, unless the model forbids it.
    fn access(&mut self, step: &Move, op: Op, at: Location, slots: &[Slot]) -> Option<Slot> {
        let place = self.graph.coherence(at).len().checked_sub(step.newer)?;
        let Some(source) = step.source else {
            self.allows(step.thread, op, at, Kind::Write, place)?;
            return Some(self.write(step.thread, op, at, Kind::Write, place));
        };
        let source = source.map_or(INIT, |source| slots[source]);
        let kind = match step.writes {
            true => Kind::ReadHalf,
            false => Kind::Read,
        };
        let position = self.graph.position(at, source);
        self.allows(step.thread, op, at, kind, position)?;
        let event = Event::new(self.graph.next_id(step.thread), kind, op);
        let slot = self.graph.push_read(at, event, source);
        self.model.added(&self.graph, slot);
        match step.writes {
            true => Some(self.write(step.thread, op, at, Kind::WriteHalf, position)),
            false => Some(slot),
        }
    }

    fn write(
        &mut self,
        thread: ThreadId,
        op: Op,
        at: Location,
        kind: Kind,
        position: usize,
    ) -> Slot {
        let event = Event::new(self.graph.next_id(thread), kind, op);
        let slot = self.graph.push_write(at, event, position);
        self.model.added(&self.graph, slot);
        slot
    }

    fn allows(
        &mut self,
        thread: ThreadId,
        op: Op,
        location: Location,
        kind: Kind,
        position: usize,
    ) -> Option<()> {
        let access = Access {
            thread,
            predecessor: self.graph.last(thread),
            location,
            op,
            kind,
        };
        (position >= self.model.oldest(&self.graph, &access)).then_some(())
    }
}
