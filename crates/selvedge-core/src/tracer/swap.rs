//! Algorithm 2, DeclarePostponed: the schedules that a new event makes possible.
//!
//! A new write may be read by every earlier read of its location that it does not depend on. That
//! read gets a schedule: the events that the write depends on, the write, and the read of it.
//!
//! Deviations: every such read gets a schedule, not only the closest one; and an update *competes*
//! for the write that an earlier update took, since two updates cannot read the same write. The
//! schedule then consists of the events that the new update depends on, the new update reading that
//! write, and the earlier update reading the new one.

use super::Search;
use super::consistency::Consistency;
use super::frame::{Frame, NOWHERE, alternatives};
use super::schedules::{Observation, Step};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::machine::SpinLoops;
use crate::op::{Effect, Op};
use crate::report::Observer;

/// Buffers for the construction of a schedule.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The number of events of each thread that the schedule needs.
    needed: Vec<u32>,
    observations: Vec<Observation>,
}

/// The end of a schedule, after the events that it needs.
#[derive(Clone, Copy)]
struct Tail {
    /// The update that takes the write which the frame's update took.
    competitor: Option<Observation>,
    /// The write that the frame's operation reads, and its choice.
    read: Option<(EventId, u32)>,
}

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Declares the operation that begins in `slot`, just added, to earlier reads.
    pub(super) fn declare(&mut self, slot: Slot) {
        let event = *self.graph.event(slot);
        let Some(at) = event.op.location() else {
            return;
        };
        match event.kind {
            Kind::Write => self.declare_postponed(slot, at),
            Kind::ReadHalf => self.declare_postponed(slot + 1, at),
            _ => {}
        }
        if let Op::Update { .. } = event.op {
            self.compete(event.id, event.op, at);
        }
    }

    /// Declares all operations after the first `events` events.
    pub(super) fn declare_since(&mut self, events: usize) {
        for slot in events as Slot..self.graph.len() as Slot {
            if self.graph.event(slot).kind != Kind::WriteHalf {
                self.declare(slot);
            }
        }
    }

    /// Offers a new write of `at` to every earlier read that it does not depend on.
    fn declare_postponed(&mut self, write: Slot, at: Location) {
        let graph = &self.graph;
        let event = graph.event(write);
        let clock = graph.causality(write);
        let concurrent = |frame: &Frame| frame.slot != NOWHERE && !graph.counted(clock, frame.slot);
        for &first in &self.awaits.frames {
            let frame = &mut self.frames[first as usize];
            if !frame.iterations.knows_write(at) && concurrent(frame) {
                frame.iterations.note_write(at);
            }
        }
        let mut next = self.latest.of(at);
        while next != NOWHERE {
            let frame = &mut self.frames[next as usize];
            next = frame.previous;
            if frame.blocking || frame.awaits.is_some() || !concurrent(frame) {
                continue;
            }
            self.scratch.needed.clear();
            self.scratch.needed.extend_from_slice(clock);
            for choice in 0..alternatives(&frame.op, event.wrote) {
                let tail = Tail {
                    competitor: None,
                    read: Some((event.id, choice)),
                };
                self.scratch.offer(graph, frame, tail);
            }
        }
    }

    /// Offers `op`, performed as the event `id` or still pending, to every earlier update that took
    /// a write which it could have taken itself.
    pub(super) fn compete(&mut self, id: EventId, op: Op, at: Location) {
        let Op::Update { function, .. } = op else {
            return;
        };
        let graph = &self.graph;
        let before = graph.predecessor(id);
        let known = before.map(|slot| graph.causality(slot));
        let mut next = self.latest.of(at);
        while next != NOWHERE {
            let number = next;
            let frame = &self.frames[number as usize];
            next = frame.previous;
            if frame.slot == NOWHERE {
                continue;
            }
            let taker = graph.event(frame.slot);
            let concurrent = taker.id.thread != id.thread
                && !known.is_some_and(|clock| graph.counted(clock, frame.slot));
            let mut earlier = self.awaits.frames.iter().take_while(|&&f| f < number);
            if !concurrent
                || earlier.any(|&f| self.frames[f as usize].excludes(graph, id, taker.source))
            {
                continue;
            }
            if let Some(read) = frame.awaits {
                let first = &mut self.frames[read.first as usize];
                first.iterations.note_write(at);
                continue;
            }
            if taker.kind != Kind::ReadHalf {
                continue;
            }
            let value = taker.read;
            let choices = match function.apply(value) {
                Effect::Write(_) => 1,
                Effect::Choose(alternatives) => alternatives,
                Effect::Keep | Effect::Block => continue,
            };
            self.scratch.need(graph, known, taker.source);
            let source = source_id(graph, taker.source);
            let write = EventId {
                thread: id.thread,
                index: id.index + 1,
            };
            let frame = &mut self.frames[number as usize];
            for choice in 0..choices {
                let competitor = Some(Observation {
                    event: id,
                    source,
                    choice,
                });
                if frame.blocking {
                    let read = None;
                    self.scratch.offer(graph, frame, Tail { competitor, read });
                    continue;
                }
                let written = match function.apply(value) {
                    Effect::Choose(_) => function.choose(value, choice),
                    Effect::Write(new) => new,
                    Effect::Keep | Effect::Block => value,
                };
                for choice in 0..alternatives(&frame.op, written) {
                    let read = Some((write, choice));
                    self.scratch.offer(graph, frame, Tail { competitor, read });
                }
            }
        }
    }
}

/// The name of a write, `None` for the initial one.
fn source_id(graph: &Graph, source: Slot) -> Option<EventId> {
    (source != INIT).then(|| graph.event(source).id)
}

fn source_of(graph: &Graph, event: &Event) -> Option<EventId> {
    match event.kind.reads() {
        true => source_id(graph, event.source),
        false => None,
    }
}

impl Scratch {
    /// Collects the events that an update needs which comes after those in `known` and reads
    /// `source`.
    fn need(&mut self, graph: &Graph, known: Option<&[u32]>, source: Slot) {
        self.needed.clear();
        match known {
            Some(clock) => self.needed.extend_from_slice(clock),
            None => self.needed.resize(graph.threads(), 0),
        }
        if source != INIT {
            for (needed, &counted) in self.needed.iter_mut().zip(graph.causality(source)) {
                *needed = (*needed).max(counted);
            }
        }
    }

    /// Gives `frame` the schedule of the needed events and the tail, unless it has had it (lines 9
    /// and 10).
    fn offer(&mut self, graph: &Graph, frame: &mut Frame, tail: Tail) {
        self.observe(graph, frame, tail);
        if !frame.schedules.is_new(&self.observations) {
            return;
        }
        // A fence is performed with the operations of its thread around it.
        let slots = frame.events as Slot..graph.len() as Slot;
        let needed = slots.filter(|&slot| graph.counted(&self.needed, slot));
        let needed = needed
            .map(|slot| graph.event(slot))
            .filter(|event| event.kind != Kind::WriteHalf && !matches!(event.op, Op::Fence { .. }));
        let needed = needed.map(|event| Step {
            thread: event.id.thread,
            source: source_of(graph, event),
            choice: event.choice,
        });
        let competitor = tail.competitor.map(|competitor| Step {
            thread: competitor.event.thread,
            source: competitor.source,
            choice: competitor.choice,
        });
        let read = tail.read.map(|(source, choice)| Step {
            thread: frame.thread,
            source: Some(source),
            choice,
        });
        frame.schedules.push(needed.chain(competitor).chain(read));
    }

    /// Lists the observations of a schedule in canonical order: what it is for, then thread by
    /// thread.
    fn observe(&mut self, graph: &Graph, frame: &Frame, tail: Tail) {
        self.observations.clear();
        let read = tail.read.map(|(source, choice)| Observation {
            event: frame.id(),
            source: Some(source),
            choice,
        });
        self.observations.extend(read.or(tail.competitor));
        let competitor = tail.competitor.filter(|_| read.is_some());
        for (thread, &needed) in self.needed.iter().enumerate() {
            let thread = ThreadId(thread as u32);
            let events = graph.thread(thread);
            let events = &events[..events.len().min(needed as usize)];
            let old = events.partition_point(|&slot| (slot as usize) < frame.events);
            for &slot in &events[old..] {
                let event = graph.event(slot);
                // Program order determines everything else.
                if event.kind.reads() || matches!(event.op, Op::Choose { .. }) {
                    self.observations.push(Observation {
                        event: event.id,
                        source: source_of(graph, event),
                        choice: event.choice,
                    });
                }
            }
            let here = competitor.filter(|competitor| competitor.event.thread == thread);
            self.observations.extend(here);
        }
    }
}
