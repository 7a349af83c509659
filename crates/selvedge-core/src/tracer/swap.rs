//! What an event makes possible for earlier reads.
//!
//! A new write may be read by every earlier read of its location that it does not depend on; an
//! update may take the write that an earlier update took. Either way the earlier operation
//! gets a *schedule*: the events that the new one needs, the new one, and then itself.

use super::Search;
use super::consistency::Consistency;
use super::frame::{Frame, NOWHERE, Observation, Step, Turn, alternatives, has_rival, is_left};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::machine::Machine;
use crate::op::{Effect, Op, Value};
use crate::report::Observer;

/// The buffers in which a schedule is put together.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// Of each thread, how many events the schedule needs.
    needed: Vec<u32>,
    observations: Vec<Observation>,
}

/// What follows the events that a schedule needs.
#[derive(Clone, Copy)]
struct Finale {
    /// An update that takes what the frame's took.
    rival: Option<Observation>,
    /// What the frame's operation then reads.
    last: Option<(EventId, u32)>,
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Looks what the operation that begins in `slot`, just added, makes possible.
    pub(super) fn announce(&mut self, slot: Slot) {
        let event = *self.graph.event(slot);
        let Some(at) = event.op.location() else {
            return;
        };
        match event.kind {
            Kind::Write => self.declare(slot, at),
            Kind::ReadHalf => self.declare(slot + 1, at),
            _ => {}
        }
        if let Op::Update { .. } = event.op {
            self.compete(event.id, event.op, at);
        }
    }

    /// Offers a new write to every earlier read.
    fn declare(&mut self, write: Slot, at: Location) {
        let graph = &self.graph;
        let event = graph.event(write);
        let clock = graph.causality(write);
        for &first in &self.watching {
            let frame = &mut self.frames[first as usize];
            let beside = frame.slot != NOWHERE && !graph.counted(clock, frame.slot);
            if let Some(Turn::Taken { rivals: false }) = frame.turn
                && beside
                && !frame.written.contains(&at)
            {
                let rivals = frame.watched.contains(&at);
                frame.turn = Some(Turn::Taken { rivals });
                frame.written.push(at);
            }
        }
        let mut next = self.latest.of(at);
        while next != NOWHERE {
            let index = next as usize;
            let frame = &self.frames[index];
            next = frame.previous;
            let suits = frame.slot != NOWHERE && !frame.waits && !graph.counted(clock, frame.slot);
            if !suits || has_rival(&mut self.frames, index) {
                continue;
            }
            let frame = &mut self.frames[index];
            self.scratch.needed.clear();
            self.scratch.needed.extend_from_slice(clock);
            for choice in 0..alternatives(&frame.op, event.wrote) {
                let last = Some((event.id, choice));
                let finale = Finale { rival: None, last };
                self.scratch.offer(graph, frame, finale);
            }
        }
    }

    /// Offers `op`, performed as the event `id` or still waiting to be, to every earlier update
    /// that took a write which it could have taken itself.
    pub(super) fn compete(&mut self, id: EventId, op: Op, at: Location) {
        let Op::Update { function, .. } = op else {
            return;
        };
        let graph = &self.graph;
        let before = graph.predecessor(id);
        let known = before.map(|slot| graph.causality(slot));
        let (frames, latest) = (&mut self.frames[..self.depth], self.latest.of(at));
        let number = |frame: u32| (frame != NOWHERE).then_some(frame as usize);
        let mut next = number(latest);
        // What it left to others, it does not take in what follows that.
        let mut left = match self.loops.any() {
            true => last_left(frames, graph, id),
            false => None,
        };
        while let Some(index) = next {
            while let Some((at, _)) = left.filter(|&(at, _)| at > index) {
                left = last_left(&frames[..at], graph, id);
            }
            let frame = &frames[index];
            next = number(frame.previous);
            if frame.slot == NOWHERE {
                continue;
            }
            let taker = graph.event(frame.slot);
            let independent = taker.id.thread != id.thread
                && !known.is_some_and(|clock| graph.counted(clock, frame.slot));
            if !independent {
                continue;
            }
            let left = left.map(|(_, events)| events);
            if is_left(left, taker.source) {
                continue;
            }
            if has_rival(frames, index) || taker.kind != Kind::ReadHalf {
                continue;
            }
            let value = taker.read;
            let rivals = match function.apply(value) {
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
            for choice in 0..rivals {
                let seen = Observation {
                    event: id,
                    source,
                    choice,
                };
                let rival = Some(seen);
                let frame = &mut frames[index];
                if frame.waits {
                    let finale = Finale { rival, last: None };
                    self.scratch.offer(graph, frame, finale);
                    continue;
                }
                let written = written(&op, value, choice);
                for choice in 0..alternatives(&frame.op, written) {
                    let last = Some((write, choice));
                    let finale = Finale { rival, last };
                    self.scratch.offer(graph, frame, finale);
                }
            }
        }
    }
}

/// The last frame in which a turn was left to others that `event` is part of, and how many events
/// there were then.
fn last_left(frames: &[Frame], graph: &Graph, event: EventId) -> Option<(usize, usize)> {
    let mut frames = frames.iter().enumerate().rev();
    frames.find_map(|(at, frame)| Some((at, frame.left_by(graph, event)?)))
}

/// What an update that reads `value` writes.
fn written(op: &Op, value: Value, choice: u32) -> Value {
    let Op::Update { function, .. } = op else {
        return value;
    };
    match function.apply(value) {
        Effect::Write(new) => new,
        Effect::Choose(_) => function.choose(value, choice),
        Effect::Keep | Effect::Block => value,
    }
}

/// The name of a write, `None` for the initial one.
fn source_id(graph: &Graph, source: Slot) -> Option<EventId> {
    (source != INIT).then(|| graph.event(source).id)
}

/// Whether something was decided about the event that program order does not tell.
fn is_decision(event: &Event) -> bool {
    event.kind.reads() || matches!(event.op, Op::Choose { .. })
}

pub(super) fn source_of(graph: &Graph, event: &Event) -> Option<EventId> {
    match event.kind.reads() {
        true => source_id(graph, event.source),
        false => None,
    }
}

pub(super) fn observation(graph: &Graph, event: &Event) -> Observation {
    Observation {
        event: event.id,
        source: source_of(graph, event),
        choice: event.choice,
    }
}

impl Scratch {
    /// The events that an update needs which comes after those in `known` and reads `source`.
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

    /// The first events of the needed operations that come after so many events.
    fn needed_events<'a>(
        &'a self,
        graph: &'a Graph,
        events: usize,
    ) -> impl Iterator<Item = &'a Event> {
        let slots = events as Slot..graph.len() as Slot;
        let needed = slots.filter(|&slot| graph.counted(&self.needed, slot));
        let needed = needed.map(|slot| graph.event(slot));
        needed.filter(|event| event.kind != Kind::WriteHalf)
    }

    /// Gives `frame` the schedule of the needed events and the finale, unless it has had it.
    fn offer(&mut self, graph: &Graph, frame: &mut Frame, finale: Finale) {
        self.observe(graph, frame, finale);
        if !frame.schedules.is_new(&self.observations) {
            return;
        }
        // Fences need not be told: they are passed with what is before and after them.
        let needed = self.needed_events(graph, frame.events);
        let needed = needed.filter(|event| !matches!(event.op, Op::Fence { .. }));
        let needed = needed.map(|event| Step {
            thread: event.id.thread,
            source: source_of(graph, event),
            choice: event.choice,
        });
        let rival = finale.rival.map(|rival| Step {
            thread: rival.event.thread,
            source: rival.source,
            choice: rival.choice,
        });
        let last = finale.last.map(|(source, choice)| Step {
            thread: frame.thread,
            source: Some(source),
            choice,
        });
        frame.schedules.push(needed.chain(rival).chain(last));
    }

    /// The observations of a schedule in canonical order: what it is for, then thread by thread.
    fn observe(&mut self, graph: &Graph, frame: &Frame, finale: Finale) {
        self.observations.clear();
        let own = frame.id();
        match (finale.last, finale.rival) {
            (Some((source, choice)), _) => self.observations.push(Observation {
                event: own,
                source: Some(source),
                choice,
            }),
            (None, Some(rival)) => self.observations.push(rival),
            (None, None) => {}
        }
        let rival = finale.rival.filter(|_| finale.last.is_some());
        for (thread, &needed) in self.needed.iter().enumerate() {
            let thread = ThreadId(thread as u32);
            let events = graph.thread(thread);
            let events = &events[..events.len().min(needed as usize)];
            let old = events.partition_point(|&slot| (slot as usize) < frame.events);
            for &slot in &events[old..] {
                let event = graph.event(slot);
                if is_decision(event) {
                    self.observations.push(observation(graph, event));
                }
            }
            self.observations
                .extend(rival.filter(|rival| rival.event.thread == thread));
        }
    }
}
