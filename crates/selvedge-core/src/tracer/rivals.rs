//! What others may write for those who left their turn to them.

use std::collections::HashSet;

use super::Search;
use super::consistency::Consistency;
use super::frame::Observation;
use super::swap::{observation, source_of};
use crate::graph::{Graph, INIT};
use crate::ids::{EventId, Location};
use crate::machine::Machine;
use crate::op::Op;
use crate::report::Observer;

/// Writes that others may perform, each with what it needs.
#[derive(Debug, Default)]
pub(super) struct Rivals {
    events: Vec<Planned>,
    /// Where each of them begins in `events`.
    starts: Vec<usize>,
    /// There were more than are remembered.
    pub(super) forgotten: bool,
}

/// An operation that may be performed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Planned {
    pub(super) op: Op,
    pub(super) seen: Observation,
}

impl Rivals {
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.starts.clear();
        self.forgotten = false;
    }

    /// Remembers one more, if there is room for it among `most` operations.
    pub(super) fn push(&mut self, events: impl Iterator<Item = Planned>, most: usize) {
        let start = self.events.len();
        self.events.extend(events);
        if self.events.len() > most {
            self.events.truncate(start);
            self.forgotten = true;
        } else {
            self.starts.push(start);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn get(&self, index: usize) -> &[Planned] {
        let end = self.starts.get(index + 1).copied();
        &self.events[self.starts[index]..end.unwrap_or(self.events.len())]
    }
}

/// A rival of somebody who left his turn in this frame, by its number.
pub(super) type Rival = (u32, usize);

/// What rivals were imagined to do, in vain.
pub(super) struct Tried {
    /// How many events there really are.
    events: usize,
    seen: HashSet<Vec<Observation>>,
}

impl Tried {
    pub(super) fn after(events: usize) -> Tried {
        Tried {
            events,
            seen: HashSet::new(),
        }
    }

    /// Whether this is the first time that they did just what is in `graph`.
    fn is_new(&mut self, graph: &Graph) -> bool {
        let done = graph.events()[self.events..].iter();
        let mut done: Vec<_> = done.map(|event| observation(graph, event)).collect();
        done.sort_unstable_by_key(|seen| seen.event);
        self.seen.insert(done)
    }
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Whether all threads that left their turn to others can keep their word if some of these
    /// `helpers` do something. It does not matter in which order they do so. Who cannot do it now
    /// cannot do it later, and what follows from his doing it now need not be looked at again.
    pub(super) fn may_with_help(&mut self, helpers: Vec<Rival>, tried: &mut Tried) -> bool {
        let events = self.graph.len();
        let mut known = Vec::new();
        let mut others = helpers;
        loop {
            let locations = self.wanted();
            let is_wanted = |&(frame, rival): &Rival| {
                let last = self.frames[frame as usize].rivals.get(rival).last();
                let at = last.and_then(|last| last.op.location());
                at.is_some_and(|at| locations.contains(&(frame, at)))
            };
            let (mut wanted, rest): (Vec<Rival>, Vec<Rival>) =
                others.into_iter().partition(is_wanted);
            if wanted.is_empty() {
                return false;
            }
            others = rest;
            let now = wanted.clone();
            while let Some((frame, rival)) = wanted.pop() {
                let helps = self.comes(frame, rival)
                    && tried.is_new(&self.graph)
                    && (tried.seen.len() > self.limits.imagined
                        || self.may_without_help()
                        || self.may_with_help([&known[..], &others, &wanted].concat(), tried));
                self.undo(events);
                if helps {
                    return true;
                }
            }
            // Meanwhile it may have become known that others are wanted as well, and these may need
            // everybody's help.
            known.extend(now);
        }
    }

    /// The locations that threads want to read who left their turn, with the frames in which they
    /// did so.
    fn wanted(&mut self) -> Vec<(u32, Location)> {
        let mut wanted = Vec::new();
        for at in 0..self.turns.leaving.len() {
            let number = self.turns.leaving[at];
            if !self.is_current(number) {
                continue;
            }
            let frame = &self.frames[number as usize];
            let routine = self.loops.routine(frame.thread, frame.index);
            let all = frame.location().into_iter().chain(routine.read_on());
            for at in all.map(|at| (number, at)) {
                if !wanted.contains(&at) {
                    wanted.push(at);
                }
            }
        }
        wanted
    }

    /// Offers the read of the last frame, which has just been opened, what those do who can help.
    pub(super) fn offer_help(&mut self) {
        let events = self.graph.len();
        for at in 0..self.turns.leaving.len() {
            let number = self.turns.leaving[at];
            if !self.is_current(number) {
                continue;
            }
            for rival in 0..self.frames[number as usize].rivals.len() {
                let own = &self.frames[self.depth - 1];
                let planned = self.frames[number as usize].rivals.get(rival);
                let concerns = planned.iter().any(|planned| {
                    planned.seen.event == own.id()
                        || matches!(own.op, Op::Update { .. })
                            && matches!(planned.op, Op::Update { .. })
                            && planned.op.location() == own.location()
                });
                if concerns && self.comes(number, rival) {
                    self.offer_rival();
                }
                self.undo(events);
            }
        }
    }

    /// Whether what a rival does can still be done, and has not been; adds it to the graph.
    fn comes(&mut self, frame: u32, rival: usize) -> bool {
        let events = self.graph.len();
        let steps = self.frames[frame as usize].rivals.get(rival).len();
        for step in 0..steps {
            let Planned { op, seen } = self.frames[frame as usize].rivals.get(rival)[step];
            let EventId { thread, index } = seen.event;
            let done = self.graph.thread(thread);
            if let Some(&slot) = done.get(index as usize) {
                let event = self.graph.event(slot);
                let same = source_of(&self.graph, event) == seen.source;
                if !same || event.choice != seen.choice {
                    return false;
                }
                continue;
            }
            let follows = done.len() == index as usize;
            let source = seen.source.map_or(Some(&INIT), |id| {
                self.graph.thread(id.thread).get(id.index as usize)
            });
            let Some(&source) = source.filter(|_| follows) else {
                return false;
            };
            let initial = op.location().map_or(0, |at| self.machine.initial(at));
            let pushed = self.push(thread, op, source, seen.choice, initial);
            if pushed.is_none() {
                return false;
            }
            let mut leaving = self.turns.leaving.iter();
            if leaving.any(|&left| self.frames[left as usize].is_broken_by(&self.graph, seen.event))
            {
                return false;
            }
        }
        self.graph.len() > events
    }
}
