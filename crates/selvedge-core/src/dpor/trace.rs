//! `E`: the execution in progress, a sequence of steps with their happens-before.
//!
//! The events live in the same graph that the graph engine uses. In a sequence each
//! read sees the newest write and each write is the newest one, so the model's order of the graph is
//! the happens-before of the sequence, and reports and counterexamples come for free.

use super::act::{Act, Next};
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::{EventId, Location, ThreadId};
use crate::machine::Outcome;
use crate::model::{Model, SequentialConsistency};
use crate::op::{Effect, Op, Value};

/// A step's place in the sequence, counted from zero; also the node before that step.
pub(super) type StepIndex = usize;

/// One step of the sequence.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) act: Act,
    pub(super) op: Op,
    pub(super) outcome: Outcome,
    /// The value of its location before it.
    pub(super) before: Value,
    /// Its events: one, or the two halves of an update.
    first: Slot,
    pub(super) last: Slot,
    /// Where the block it belongs to begins, the maximal run of one thread.
    pub(super) block: StepIndex,
}

#[derive(Default)]
pub(super) struct Trace {
    pub(super) graph: Graph,
    pub(super) model: SequentialConsistency,
    steps: Vec<Step>,
    /// Of each event, its step.
    place_of: Vec<StepIndex>,
    /// Of each location, the steps that touch it.
    accesses: Vec<Vec<StepIndex>>,
    none: Vec<u32>,
}

impl Trace {
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn step(&self, place: StepIndex) -> &Step {
        &self.steps[place]
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// `last(E)`; main before the first step.
    pub(super) fn running(&self) -> ThreadId {
        self.steps
            .last()
            .map_or(ThreadId::MAIN, |step| step.act.thread)
    }

    /// Makes room for threads numbered below `threads`.
    pub(super) fn reserve_threads(&mut self, threads: usize) {
        self.graph.reserve_threads(threads);
        if self.none.len() < threads {
            self.none.resize(threads, 0);
        }
    }

    /// The steps that touch `location`, oldest first.
    pub(super) fn accesses(&self, location: Location) -> &[StepIndex] {
        match self.accesses.get(location.index()) {
            Some(accesses) => accesses,
            None => &[],
        }
    }

    /// The value of the newest write to `location`, if there is one.
    pub(super) fn written(&self, location: Location) -> Option<Value> {
        let newest = self.graph.coherence(location).last()?;
        Some(self.graph.event(*newest).wrote)
    }

    /// `clock(p)`: what happens before whatever `thread` does next, as counts of events.
    pub(super) fn clock(&self, thread: ThreadId) -> &[u32] {
        match self.graph.last(thread) {
            Some(last) => self.model.linear_order(&self.graph, last),
            None => &self.none,
        }
    }

    /// The clock of the step at `place`: all that happens before it, itself included.
    pub(super) fn order(&self, place: StepIndex) -> &[u32] {
        self.model.linear_order(&self.graph, self.steps[place].last)
    }

    /// Whether `clock` knows of the step at `place`.
    pub(super) fn knows(&self, clock: &[u32], place: StepIndex) -> bool {
        let id = self.graph.event(self.steps[place].last).id;
        clock.get(id.thread.index()).is_some_and(|&n| n > id.index)
    }

    /// `earlier → later`
    pub(super) fn happens_before(&self, earlier: StepIndex, later: StepIndex) -> bool {
        self.knows(self.order(later), earlier)
    }

    /// The first step of `thread` at or after `place`.
    pub(super) fn first_from(&self, thread: ThreadId, place: StepIndex) -> Option<StepIndex> {
        let events = self.graph.thread(thread);
        let from = self.steps.get(place)?.first;
        let at = events.partition_point(|&slot| slot < from);
        events.get(at).map(|&slot| self.place_of[slot as usize])
    }

    /// The last step of `thread` that `clock` knows of.
    pub(super) fn last_known(&self, thread: ThreadId, clock: &[u32]) -> Option<StepIndex> {
        let count = clock.get(thread.index()).copied().unwrap_or(0) as usize;
        let slot = self.graph.thread(thread).get(count.checked_sub(1)?)?;
        Some(self.place_of[*slot as usize])
    }

    /// The last step of `thread`.
    pub(super) fn last_of(&self, thread: ThreadId) -> Option<StepIndex> {
        let slot = self.graph.thread(thread).last()?;
        Some(self.place_of[*slot as usize])
    }

    /// Whether `thread` existed at the node `place`.
    pub(super) fn existed(&self, thread: ThreadId, place: StepIndex) -> bool {
        let from = match self.steps.get(place) {
            Some(step) => step.first,
            None => return true,
        };
        let first = EventId { thread, index: 0 };
        match self.graph.predecessor(first) {
            Some(creation) => creation < from,
            None => thread == ThreadId::MAIN,
        }
    }

    /// `E.p`, with alternative `choice`.
    pub(super) fn push(&mut self, next: &Next, choice: u32) {
        let thread = next.act.thread;
        let first = self.graph.len() as Slot;
        let outcome = match next.act.location() {
            None => self.push_silent(next, choice),
            Some(at) => {
                let place = self.steps.len();
                if self.accesses.len() <= at.index() {
                    self.accesses.resize(at.index() + 1, Vec::new());
                }
                self.accesses[at.index()].push(place);
                match next.op {
                    Op::Store { value, .. } => self.push_store(next, at, value),
                    _ => self.push_read(next, at, choice),
                }
            }
        };
        let place = self.steps.len();
        self.place_of.resize(self.graph.len(), place);
        let block = match self.steps.last() {
            Some(previous) if previous.act.thread == thread => previous.block,
            _ => place,
        };
        self.steps.push(Step {
            act: Act { choice, ..next.act },
            op: next.op,
            outcome,
            before: next.value,
            first,
            last: self.graph.len() as Slot - 1,
            block,
        });
    }

    fn push_silent(&mut self, next: &Next, choice: u32) -> Outcome {
        let id = self.graph.next_id(next.act.thread);
        let mut event = Event::new(id, Kind::Silent, next.op);
        event.choice = choice;
        event.read = Value::from(choice);
        let slot = self.graph.push_silent(event);
        self.model.added(&self.graph, slot);
        Outcome {
            read: event.read,
            wrote: None,
        }
    }

    fn push_store(&mut self, next: &Next, at: Location, value: Value) -> Outcome {
        let id = self.graph.next_id(next.act.thread);
        let mut event = Event::new(id, Kind::Write, next.op);
        event.wrote = value;
        self.push_newest(at, event);
        Outcome::default()
    }

    fn push_read(&mut self, next: &Next, at: Location, choice: u32) -> Outcome {
        let read = next.value;
        let wrote = match next.op {
            Op::Update { function, .. } => match function.apply(read) {
                Effect::Write(value) => Some(value),
                Effect::Choose(_) => Some(function.choose(read, choice)),
                Effect::Keep => None,
                Effect::Block => unreachable!("only enabled steps are taken"),
            },
            _ => None,
        };
        let kind = match wrote {
            Some(_) => Kind::ReadHalf,
            None => Kind::Read,
        };
        let half = self.push_source(next, at, kind, choice, wrote.unwrap_or_default());
        if let Some(value) = wrote {
            let id = self.graph.next_id(next.act.thread);
            let mut event = Event::new(id, Kind::WriteHalf, next.op);
            event.read = half.read;
            event.wrote = value;
            self.push_newest(at, event);
        }
        Outcome { read, wrote }
    }

    fn push_source(
        &mut self,
        next: &Next,
        at: Location,
        kind: Kind,
        choice: u32,
        wrote: Value,
    ) -> Event {
        let id = self.graph.next_id(next.act.thread);
        let mut event = Event::new(id, kind, next.op);
        event.read = next.value;
        event.wrote = wrote;
        event.choice = choice;
        let source = self.graph.newest(at);
        let slot = self.graph.push_read(at, event, source);
        self.model.added(&self.graph, slot);
        event
    }

    fn push_newest(&mut self, at: Location, event: Event) {
        let position = self.graph.coherence(at).len();
        let slot = self.graph.push_write(at, event, position);
        self.model.added(&self.graph, slot);
    }

    /// Adds the read of a thread that waits, which reports and counterexamples want to see. It is
    /// no step; [`remove_waiting`](Trace::remove_waiting) takes it back.
    pub(super) fn add_waiting(&mut self, next: &Next, at: Location) {
        self.push_source(next, at, Kind::Parked, 0, 0);
    }

    /// Takes back what is no step.
    pub(super) fn remove_waiting(&mut self) {
        self.shrink(self.place_of.len());
    }

    /// Takes back the last step.
    pub(super) fn pop(&mut self) {
        let step = self.steps.pop().expect("there is a step to take back");
        if let Some(at) = step.act.location() {
            self.accesses[at.index()].pop();
        }
        self.shrink(step.first as usize);
    }

    fn shrink(&mut self, events: usize) {
        self.model.undo(events);
        while self.graph.len() > events {
            self.graph.pop();
        }
        self.place_of.truncate(events);
    }
}
