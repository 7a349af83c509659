//! A machine with the steps that it has performed, and the way from there to another graph.
//!
//! Most graphs that a search visits one after the other have most of their events in common. So the
//! machine keeps the longest prefix of its steps that the next graph contains as well, undoes the
//! rest, and performs what is missing in the order in which the events were added: what was added
//! early stays longest. A machine that cannot undo is reset, and performs the whole graph.
//!
//! The effect of a step depends on the earlier steps of its thread, its outcome, and its happens-before clock; the
//! machine is told nothing else. So a step is kept if the graph has an event at its place with the same outcome and the
//! same clock. In particular the write that was read counts only as far as happens-before depends on it.

use std::ops::Deref;

use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Outcome, SpinLoops};
use crate::report::Divergence;

/// A machine and its steps since the last reset.
pub(crate) struct Rewind<'m, M> {
    machine: &'m mut M,
    steps: Vec<Step>,
    /// The clocks of all steps, one after the other.
    clocks: Vec<u32>,
    /// Whether the machine stands after `steps`. Other code may have moved it.
    known: bool,
    /// How many events of each thread are performed; scratch.
    done: Vec<u32>,
}

/// A step, or a retry of one.
#[derive(Clone, Copy, Debug)]
struct Step {
    thread: ThreadId,
    outcome: Outcome,
    /// Where its clock begins. A retry has none.
    clock: u32,
    /// For a retry, the number of the step that it takes back.
    retries: Option<u32>,
    /// Whether a later retry takes it back.
    retried: bool,
}

impl<M> Deref for Rewind<'_, M> {
    type Target = M;

    fn deref(&self) -> &M {
        self.machine
    }
}

impl<'m, M: Machine> Rewind<'m, M> {
    /// The machine, wherever it stands.
    pub(crate) fn new(machine: &'m mut M) -> Rewind<'m, M> {
        Rewind {
            machine,
            steps: Vec::new(),
            clocks: Vec::new(),
            known: false,
            done: Vec::new(),
        }
    }

    /// The machine, for code that moves it.
    pub(crate) fn lend(&mut self) -> &mut M {
        self.known = false;
        self.machine
    }

    pub(crate) fn reset(&mut self) {
        self.machine.reset();
        self.steps.clear();
        self.clocks.clear();
        self.known = true;
    }

    #[inline]
    pub(crate) fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        self.steps.push(Step {
            thread,
            outcome,
            clock: self.clocks.len() as u32,
            retries: None,
            retried: false,
        });
        self.clocks.extend_from_slice(clock);
        self.machine.resume(thread, outcome, clock);
    }

    /// Brings the machine to `graph`: it performs all events but those that wait. `clock` tells the
    /// happens-before clock of an event.
    pub(crate) fn bring_to<'g>(
        &mut self,
        graph: &'g Graph,
        clock: impl Fn(Slot) -> &'g [u32],
    ) -> Result<(), Divergence> {
        let kept = match self.known {
            true => self.common(graph, &clock),
            false => 0,
        };
        let undone = self.steps.len() - kept;
        if self.known && (undone == 0 || self.machine.undo(undone)) {
            self.truncate(kept);
        } else {
            self.reset();
        }
        self.count_done(graph.threads());
        self.perform(graph, &clock)
    }

    /// The clock of step number `step`.
    fn clock(&self, step: usize) -> &[u32] {
        let end = match self.steps.get(step + 1) {
            Some(next) => next.clock as usize,
            None => self.clocks.len(),
        };
        &self.clocks[self.steps[step].clock as usize..end]
    }

    /// How many steps `graph` has in common with the machine.
    fn common<'g>(&self, graph: &'g Graph, clock: &impl Fn(Slot) -> &'g [u32]) -> usize {
        let mut kept = 0;
        // Steps that the graph does not have and that are retried later.
        let mut absent = 0;
        for (number, step) in self.steps.iter().enumerate() {
            match step.retries {
                Some(retried) => {
                    absent -= usize::from(!self.is_in(graph, clock, retried as usize));
                }
                None if self.is_in(graph, clock, number) => {}
                None if step.retried => absent += 1,
                None => break,
            }
            if absent == 0 {
                kept = number + 1;
            }
        }
        kept
    }

    /// Whether `graph` has an event that stands for step `number`.
    #[inline]
    fn is_in<'g>(
        &self,
        graph: &'g Graph,
        clock: &impl Fn(Slot) -> &'g [u32],
        number: usize,
    ) -> bool {
        let step = &self.steps[number];
        let own = self.clock(number);
        let events = graph.thread(step.thread);
        let Some(&slot) = events.get(own[step.thread.index()] as usize - 1) else {
            return false;
        };
        let event = graph.event(slot);
        !matches!(event.kind, Kind::ReadHalf | Kind::Parked)
            && outcome(event) == step.outcome
            && same(own, clock(slot))
    }

    fn truncate(&mut self, steps: usize) {
        let Some(first) = self.steps.get(steps) else {
            return;
        };
        self.clocks.truncate(first.clock as usize);
        while self.steps.len() > steps {
            if let Some(Step { retries, .. }) = self.steps.pop()
                && let Some(step) = retries
                && let Some(step) = self.steps.get_mut(step as usize)
            {
                step.retried = false;
            }
        }
    }

    /// Counts the events that the machine has performed.
    fn count_done(&mut self, threads: usize) {
        self.done.clear();
        self.done.resize(threads, 0);
        for number in 0..self.steps.len() {
            let step = self.steps[number];
            let own = step.thread.index();
            self.done[own] = match step.retries {
                None => self.clock(number)[own],
                Some(retried) => self.clock(retried as usize)[own] - 1,
            };
        }
    }

    /// Performs what is missing.
    fn perform<'g>(
        &mut self,
        graph: &'g Graph,
        clock: &impl Fn(Slot) -> &'g [u32],
    ) -> Result<(), Divergence> {
        loop {
            let (mut progress, mut left) = (false, false);
            for (slot, event) in graph.events().iter().enumerate() {
                let (thread, slot) = (event.id.thread, slot as Slot);
                let done = self.done[thread.index()];
                if event.id.index < done {
                    continue;
                }
                let performable = match event.id.index == done {
                    true => performable(graph, &self.done, slot),
                    false => None,
                };
                let Some(last) = performable else {
                    left |= !waits(graph, slot);
                    continue;
                };
                expect(self.machine, event)?;
                self.resume(thread, outcome(graph.event(last)), clock(last));
                self.done[thread.index()] = graph.event(last).id.index + 1;
                progress = true;
            }
            if !left {
                return Ok(());
            }
            if !progress {
                return Err("an execution could not be repeated".to_owned().into());
            }
        }
    }
}

impl<M: SpinLoops> Rewind<'_, M> {
    pub(crate) fn retry(&mut self, thread: ThreadId) {
        let counts = |step: &Step| step.thread == thread && step.retries.is_none() && !step.retried;
        let step = self.steps.iter().rposition(counts);
        let step = step.expect("a thread that spins has taken a step");
        if step + 1 == self.steps.len() && self.machine.undo(1) {
            self.truncate(step);
            return;
        }
        self.steps[step].retried = true;
        self.steps.push(Step {
            thread,
            outcome: Outcome::default(),
            clock: self.clocks.len() as u32,
            retries: Some(step as u32),
            retried: false,
        });
        self.machine.retry(thread);
    }

    /// Takes back the last `steps` steps of `thread`, if no others came in between. False if it cannot.
    pub(crate) fn take_back(&mut self, thread: ThreadId, steps: usize) -> bool {
        let kept = self.steps.len() - steps;
        let own = |step: &Step| step.thread == thread && step.retries.is_none();
        let taken = self.steps[kept..].iter().all(own) && self.machine.undo(steps);
        if taken {
            self.truncate(kept);
        }
        taken
    }

    pub(crate) fn quiet(&mut self, thread: ThreadId) -> bool {
        self.machine.quiet(thread)
    }

    pub(crate) fn never_races(&mut self, location: Location) -> bool {
        self.machine.never_races(location)
    }

    pub(crate) fn can_retry(&mut self, location: Location) -> bool {
        self.machine.can_retry(location)
    }

    pub(crate) fn misjudged(&mut self) -> bool {
        self.machine.misjudged()
    }
}

/// Whether two clocks count the same events. What lies beyond the length of one counts as zero.
fn same(one: &[u32], other: &[u32]) -> bool {
    let common = one.len().min(other.len());
    let rest = one[common..].iter().chain(&other[common..]);
    one[..common] == other[..common] && rest.fold(0, |all, &count| all | count) == 0
}

/// The outcome that the machine is told for `event`, the last one of its operation.
pub(crate) fn outcome(event: &Event) -> Outcome {
    let wrote = (event.kind == Kind::WriteHalf).then_some(event.wrote);
    Outcome {
        read: event.read,
        wrote,
    }
}

/// If the operation that begins with `slot` can be performed next in its thread, its last event.
pub(crate) fn performable(graph: &Graph, done: &[u32], slot: Slot) -> Option<Slot> {
    if !graph.causes_counted(done, slot) {
        return None;
    }
    let event = graph.event(slot);
    match event.kind {
        Kind::ReadHalf => {
            let half = event.id.index as usize + 1;
            graph.thread(event.id.thread).get(half).copied()
        }
        Kind::Parked => None,
        Kind::Read | Kind::Write | Kind::WriteHalf | Kind::Silent => Some(slot),
    }
}

/// Whether `slot` is not to be performed at all for now: a parked read, or an update that owes its
/// write half.
pub(crate) fn waits(graph: &Graph, slot: Slot) -> bool {
    let event = graph.event(slot);
    let last = event.id.index as usize + 1 == graph.thread(event.id.thread).len();
    event.kind == Kind::Parked || (event.kind == Kind::ReadHalf && last)
}

/// Checks that the machine is about to do what `event` stands for.
#[inline]
pub(crate) fn expect<M: Machine>(machine: &M, event: &Event) -> Result<(), Divergence> {
    match machine.is_about_to(event.id.thread, &event.op) {
        true => Ok(()),
        false => Err(mismatch(machine, event)),
    }
}

#[cold]
fn mismatch<M: Machine>(machine: &M, event: &Event) -> Divergence {
    Divergence::Operation {
        thread: event.id.thread,
        expected: Box::new(event.op),
        got: Box::new(machine.pending(event.id.thread)),
    }
}
