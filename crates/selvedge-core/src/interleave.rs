//! Running a machine once, one interleaving, sequentially consistent.
//!
//! No search: the caller picks the next thread. Brute force, replays of recorded schedules and
//! measurements of what a program costs without any search are built from this.

use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Outcome, Pending, may_join};
use crate::op::{Effect, Function, Op, Value};

/// An execution in progress.
pub struct Run<'m, M> {
    machine: &'m mut M,
    memory: Vec<Cell>,
    clocks: Vec<Vec<u32>>,
}

/// The newest write to a location, if there is one, and what happens before it.
#[derive(Clone, Default)]
struct Cell {
    value: Option<Value>,
    clock: Vec<u32>,
}

/// The effect of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The operation.
    pub op: Op,
    /// The value it read or picked.
    pub read: Value,
    /// The value it wrote, if it did.
    pub wrote: Option<Value>,
}

impl Performed {
    /// The effect of `op` where locations have the values that `value` tells. `thread` must be able to
    /// perform it.
    pub(crate) fn new(
        thread: ThreadId,
        op: Op,
        choice: u32,
        value: impl FnOnce(Location) -> Value,
    ) -> Performed {
        let (read, wrote) = match op {
            Op::Load { at, .. } => (value(at), None),
            Op::Store { value, .. } => (0, Some(value)),
            Op::Update { at, function, .. } => {
                let read = value(at);
                let wrote = match function.apply(read) {
                    Effect::Write(value) => Some(value),
                    Effect::Choose(_) => Some(function.choose(read, choice)),
                    Effect::Keep => None,
                    Effect::Block => panic!("{thread} has to wait"),
                };
                (read, wrote)
            }
            Op::Choose { .. } => (Value::from(choice), None),
            Op::Create { .. } | Op::Join { .. } | Op::JoinAll | Op::Fence { .. } => (0, None),
        };
        Performed { op, read, wrote }
    }

    /// The outcome that the machine is told.
    pub(crate) fn outcome(&self) -> Outcome {
        let update = matches!(self.op, Op::Update { .. });
        Outcome {
            read: self.read,
            wrote: self.wrote.filter(|_| update),
        }
    }
}

/// How many ways `thread` has to perform `op` where locations hold what `value` says.
pub(crate) fn alternatives<M: Machine>(
    machine: &M,
    thread: ThreadId,
    op: Op,
    value: impl FnOnce(Location) -> Value,
) -> u32 {
    match op {
        Op::Join { .. } | Op::JoinAll => u32::from(may_join(machine, thread, op)),
        Op::Choose { alternatives } => alternatives,
        Op::Update {
            function: Function::Memory { .. },
            ..
        } => 1,
        Op::Update { at, function, .. } => match function.apply(value(at)) {
            Effect::Block => 0,
            Effect::Choose(alternatives) => alternatives,
            Effect::Write(_) | Effect::Keep => 1,
        },
        Op::Load { .. } | Op::Store { .. } | Op::Fence { .. } | Op::Create { .. } => 1,
    }
}

impl<'m, M: Machine> Run<'m, M> {
    /// Resets the machine.
    pub fn new(machine: &'m mut M) -> Run<'m, M> {
        machine.reset();
        Run {
            machine,
            memory: Vec::new(),
            clocks: Vec::new(),
        }
    }

    /// Starts over, keeping the memory.
    pub fn restart(&mut self) {
        self.machine.reset();
        for cell in &mut self.memory {
            cell.value = None;
        }
        for clock in &mut self.clocks {
            clock.clear();
        }
    }

    /// The machine as it is now.
    pub fn machine(&self) -> &M {
        self.machine
    }

    /// How many ways `thread` has to go on: none if it is stopped or has to wait, several for
    /// choices.
    pub fn alternatives(&self, thread: ThreadId) -> u32 {
        match self.machine.pending(thread) {
            Pending::Op(op) => alternatives(self.machine, thread, op, |at| self.value(at)),
            _ => 0,
        }
    }

    /// The left-most thread that can take a step, starting the search at `first`.
    pub fn next_from(&self, first: ThreadId) -> Option<ThreadId> {
        let threads = self.machine.threads() as u32;
        (first.0..threads)
            .chain(0..first.0.min(threads))
            .map(ThreadId)
            .find(|&thread| self.alternatives(thread) > 0)
    }

    /// Lets `thread`, which must have alternatives, take a step.
    pub fn step(&mut self, thread: ThreadId, choice: u32) -> Performed {
        let Pending::Op(op) = self.machine.pending(thread) else {
            panic!("{thread} has no step to take");
        };
        let performed = Performed::new(thread, op, choice, |at| self.value(at));
        self.clock(thread)[thread.index()] += 1;
        match op {
            Op::Load { at, .. } => self.read(thread, at),
            Op::Store { at, value, .. } => self.write(thread, at, value),
            Op::Update { at, .. } => {
                self.read(thread, at);
                if let Some(value) = performed.wrote {
                    self.clock(thread)[thread.index()] += 1;
                    self.write(thread, at, value);
                }
            }
            Op::Create { child } => {
                let clock = std::mem::take(self.clock(thread));
                self.clock(child).clone_from(&clock);
                self.clocks[thread.index()] = clock;
            }
            Op::Join { child } => self.join(thread, child),
            Op::JoinAll => {
                for child in (0..self.machine.threads() as u32).map(ThreadId) {
                    if child != thread {
                        self.join(thread, child);
                    }
                }
            }
            Op::Choose { .. } | Op::Fence { .. } => {}
        }
        self.machine
            .resume(thread, performed.outcome(), &self.clocks[thread.index()]);
        performed
    }

    fn value(&self, at: Location) -> Value {
        let newest = self.memory.get(at.index()).and_then(|cell| cell.value);
        newest.unwrap_or_else(|| self.machine.initial(at))
    }

    fn read(&mut self, thread: ThreadId, at: Location) {
        let mut clock = std::mem::take(self.clock(thread));
        if let Some(cell) = self.memory.get(at.index())
            && cell.value.is_some()
        {
            merge(&mut clock, &cell.clock);
        }
        self.clocks[thread.index()] = clock;
    }

    fn write(&mut self, thread: ThreadId, at: Location, value: Value) {
        if self.memory.len() <= at.index() {
            self.memory.resize(at.index() + 1, Cell::default());
        }
        let clock = std::mem::take(self.clock(thread));
        let cell = &mut self.memory[at.index()];
        cell.value = Some(value);
        cell.clock.clone_from(&clock);
        self.clocks[thread.index()] = clock;
    }

    fn join(&mut self, thread: ThreadId, child: ThreadId) {
        let mut clock = std::mem::take(self.clock(thread));
        let ended = self.clock(child);
        merge(&mut clock, ended);
        clock[child.index()] = ended[child.index()] + 1;
        self.clocks[thread.index()] = clock;
    }

    fn clock(&mut self, thread: ThreadId) -> &mut Vec<u32> {
        let threads = self.machine.threads().max(thread.index() + 1);
        if self.clocks.len() < threads {
            self.clocks.resize(threads, Vec::new());
        }
        let clock = &mut self.clocks[thread.index()];
        if clock.len() < threads {
            clock.resize(threads, 0);
        }
        clock
    }
}

fn merge(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
    }
}
