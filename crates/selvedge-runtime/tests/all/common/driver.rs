//! A plain sequentially consistent driver, with happens-before from every synchronisation.

use std::collections::HashMap;

use selvedge_core::{Effect, Location, Machine, Op, Outcome, Pending, Stop, ThreadId, Value};

type Clock = Vec<u32>;

/// The state of one execution outside of the machine.
#[derive(Default)]
pub struct Driver {
    clocks: HashMap<ThreadId, Clock>,
    released: HashMap<Location, Clock>,
    memory: HashMap<Location, Value>,
    /// Every performed operation with what came of it.
    pub steps: Vec<(ThreadId, Op, Outcome)>,
}

fn join(into: &mut Clock, from: &[u32]) {
    into.resize(into.len().max(from.len()), 0);
    for (a, b) in into.iter_mut().zip(from) {
        *a = (*a).max(*b);
    }
}

/// All threads of the machine.
pub fn threads<M: Machine>(machine: &M) -> impl Iterator<Item = ThreadId> + use<M> {
    (0..machine.threads() as u32).map(ThreadId)
}

impl Driver {
    /// The value of `location`.
    pub fn value(&self, machine: &impl Machine, location: Location) -> Value {
        self.memory
            .get(&location)
            .copied()
            .unwrap_or_else(|| machine.initial(location))
    }

    /// Whether `thread` can take a step.
    pub fn enabled(&self, machine: &impl Machine, thread: ThreadId) -> bool {
        let Pending::Op(op) = machine.pending(thread) else {
            return false;
        };
        let stopped = |t| !matches!(machine.pending(t), Pending::Op(_));
        match op {
            Op::Join { child } => {
                matches!(machine.pending(child), Pending::Stopped(Stop::Finished))
            }
            Op::JoinAll => threads(machine).all(|t| t == thread || stopped(t)),
            Op::Update { at, function, .. } => {
                function.apply(self.value(machine, at)) != Effect::Block
            }
            _ => true,
        }
    }

    /// Performs the pending operation of `thread`; choices take the first alternative.
    pub fn step(&mut self, machine: &mut impl Machine, thread: ThreadId) -> Outcome {
        let Pending::Op(op) = machine.pending(thread) else {
            panic!("{thread} is stopped")
        };
        let mut clock = self.clocks.remove(&thread).unwrap_or_default();
        clock.resize(machine.threads().max(clock.len()), 0);
        let mut outcome = Outcome::default();
        if let Op::Load { at, .. } | Op::Update { at, .. } = op {
            join(&mut clock, self.released.get(&at).map_or(&[][..], |c| c));
        }
        match op {
            Op::Load { at, .. } => outcome.read = self.value(machine, at),
            Op::Store { at, value, .. } => {
                self.value(machine, at);
                self.memory.insert(at, value);
            }
            Op::Update { at, function, .. } => {
                outcome.read = self.value(machine, at);
                outcome.wrote = match function.apply(outcome.read) {
                    Effect::Write(value) => Some(value),
                    Effect::Choose(_) => Some(function.choose(outcome.read, 0)),
                    Effect::Keep => None,
                    Effect::Block => panic!("{thread} is blocked"),
                };
                if let Some(value) = outcome.wrote {
                    self.memory.insert(at, value);
                    clock[thread.index()] += 1;
                }
            }
            Op::Join { child } => {
                let child = self.clocks.get(&child).cloned().unwrap_or_default();
                join(&mut clock, &child);
            }
            Op::JoinAll | Op::Fence { .. } | Op::Create { .. } | Op::Choose { .. } => {}
        }
        clock.resize(machine.threads().max(clock.len()), 0);
        clock[thread.index()] += 1;
        if let Op::Create { child } = op {
            self.clocks.insert(child, clock.clone());
        }
        if matches!(op, Op::Store { .. }) || outcome.wrote.is_some() {
            self.released
                .insert(op.location().expect("a write"), clock.clone());
        }
        machine.resume(thread, outcome, &clock);
        self.clocks.insert(thread, clock);
        self.steps.push((thread, op, outcome));
        outcome
    }

    /// Runs the machine, which was just reset, to its end under `choose`.
    pub fn run<M: Machine>(
        machine: &mut M,
        mut choose: impl FnMut(&[ThreadId]) -> ThreadId,
    ) -> Driver {
        let mut driver = Driver::default();
        loop {
            let enabled: Vec<_> = threads(machine)
                .filter(|&t| driver.enabled(machine, t))
                .collect();
            if enabled.is_empty() || failed(machine) {
                return driver;
            }
            driver.step(machine, choose(&enabled));
        }
    }

    /// Resets the machine and always runs the lowest thread that can run.
    pub fn first<M: Machine>(machine: &mut M) -> Driver {
        machine.reset();
        Driver::run(machine, |enabled| enabled[0])
    }

    /// Resets the machine and always runs the highest thread that can run.
    pub fn last<M: Machine>(machine: &mut M) -> Driver {
        machine.reset();
        Driver::run(machine, |enabled| enabled[enabled.len() - 1])
    }
}

/// Whether a thread failed or was refused.
pub fn failed(machine: &impl Machine) -> bool {
    threads(machine).any(|t| {
        matches!(
            machine.pending(t),
            Pending::Stopped(Stop::Failed | Stop::Refused)
        )
    })
}

/// Runs every interleaving and calls `each` at the end of every one.
pub fn every_interleaving<M: Machine>(
    machine: &mut M,
    mut each: impl FnMut(&mut M, &Driver),
) -> usize {
    let mut path: Vec<(usize, usize)> = Vec::new();
    let mut count = 0;
    loop {
        machine.reset();
        let mut depth = 0;
        let driver = Driver::run(machine, |enabled| {
            if depth == path.len() {
                path.push((0, enabled.len()));
            }
            assert_eq!(
                path[depth].1,
                enabled.len(),
                "the program behaves the same again"
            );
            let choice = enabled[path[depth].0];
            depth += 1;
            choice
        });
        count += 1;
        each(machine, &driver);
        path.truncate(depth);
        while path.last().is_some_and(|&(at, of)| at + 1 == of) {
            path.pop();
        }
        match path.last_mut() {
            Some(last) => last.0 += 1,
            None => return count,
        }
    }
}
