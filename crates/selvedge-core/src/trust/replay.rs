//! Bringing the machine to where the graph is.

use std::ops::ControlFlow;

use super::{Ending, Search};
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::ThreadId;
use crate::linear::greedy::Run;
use crate::machine::{Machine, Outcome};
use crate::model::Model;
use crate::op::Op;

impl<C: Model, M: Machine, O: super::Observer<M>> Search<'_, C, M, O> {
    /// Resets the machine and performs every event of the graph.
    pub(super) fn replay(&mut self) -> ControlFlow<Ending> {
        if let Some(bound) = self.settings.preemptions {
            self.schedule.find(&self.levels[self.depth], bound);
        }
        self.replay_as_scheduled()
    }

    /// The same if a schedule of this graph was found already.
    pub(super) fn replay_as_scheduled(&mut self) -> ControlFlow<Ending> {
        self.machine.reset();
        self.failures.clear();
        let mismatch = match self.levels[self.depth].bounded {
            true => self.replay_runs(),
            false => self.replay_causes(),
        };
        // Nobody has seen yet what the new alternative, and a read that was revisited, led to.
        self.check_all()?;
        // A race may have been blamed on a thread that had gone on before.
        match mismatch {
            Err(mismatch) if !self.hopeless => {
                ControlFlow::Break(Ending::Nondeterministic(mismatch))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    /// Each thread goes on as far as it gets. Any order that respects causality will do: the graph says what each
    /// read returns.
    fn replay_causes(&mut self) -> Result<(), String> {
        let level = &self.levels[self.depth];
        let (graph, model) = (&level.graph, &level.model);
        self.done.clear();
        self.done.resize(graph.threads(), 0);
        loop {
            let mut progress = false;
            let mut left = false;
            for thread in (0..graph.threads() as u32).map(ThreadId) {
                while let Some(&slot) = graph.thread(thread).get(self.done[thread.index()] as usize)
                {
                    let Some(last) = performable(graph, &self.done, slot) else {
                        left |= !waits(graph, slot);
                        break;
                    };
                    expect(self.machine, graph.event(slot))?;
                    let clock = model.happens_before(graph, last);
                    self.machine
                        .resume(thread, outcome(graph.event(last)), clock);
                    self.done[thread.index()] = graph.event(last).id.index + 1;
                    progress = true;
                }
            }
            if !left {
                return Ok(());
            }
            if !progress {
                return Err("an execution could not be repeated".to_owned());
            }
        }
    }

    /// The same in an order with few preemptions, if there is one.
    fn replay_runs(&mut self) -> Result<(), String> {
        let Some(runs) = self.schedule.runs() else {
            return self.replay_causes();
        };
        let level = &self.levels[self.depth];
        let (graph, model) = (&level.graph, &level.model);
        for &Run { thread, from, to } in runs {
            let mut events = graph.thread(thread)[from as usize..to as usize].iter();
            while let Some(&slot) = events.next() {
                let event = graph.event(slot);
                let last = match event.kind {
                    Kind::ReadHalf => *events.next().expect("the write half follows"),
                    _ => slot,
                };
                expect(self.machine, event)?;
                let clock = model.happens_before(graph, last);
                self.machine
                    .resume(thread, outcome(graph.event(last)), clock);
            }
        }
        Ok(())
    }
}

/// What the machine is told about `event`, the last one of its operation.
pub(crate) fn outcome(event: &Event) -> Outcome {
    let wrote = (event.kind == Kind::WriteHalf).then_some(event.wrote);
    Outcome {
        read: event.read,
        wrote,
    }
}

/// If the operation that begins with `slot` can be performed next in its thread, its last event.
pub(crate) fn performable(graph: &Graph, done: &[u32], slot: Slot) -> Option<Slot> {
    let event = graph.event(slot);
    let performed = |slot: Slot| slot == INIT || graph.counted(done, slot);
    if event.id.index == 0 && !graph.predecessor(event.id).is_none_or(performed) {
        return None;
    }
    let all = |thread: ThreadId| done[thread.index()] as usize == graph.thread(thread).len();
    match event.kind {
        Kind::Read => performed(event.source).then_some(slot),
        Kind::ReadHalf if performed(event.source) => {
            let half = event.id.index as usize + 1;
            graph.thread(event.id.thread).get(half).copied()
        }
        Kind::ReadHalf | Kind::Parked => None,
        Kind::Write | Kind::WriteHalf => Some(slot),
        Kind::Silent => match event.op {
            Op::Join { child } => all(child).then_some(slot),
            Op::JoinAll => {
                let mut others = (0..done.len() as u32).map(ThreadId);
                let ended = others.all(|other| other == event.id.thread || all(other));
                ended.then_some(slot)
            }
            _ => Some(slot),
        },
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
pub(crate) fn expect<M: Machine>(machine: &M, event: &Event) -> Result<(), String> {
    match machine.is_about_to(event.id.thread, &event.op) {
        true => Ok(()),
        false => Err(mismatch(machine, event)),
    }
}

#[cold]
fn mismatch<M: Machine>(machine: &M, event: &Event) -> String {
    format!(
        "{} did something else when it was run again (expected {:?}, got {:?}): the program does \
         not depend on its schedule alone",
        event.id.thread,
        event.op,
        machine.pending(event.id.thread)
    )
}
