//! From a graph to a schedule that people can read: the one with the fewest context switches.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::{Machine, Outcome, Pending, Stop};
use crate::model::Model;
use crate::op::{Effect, Op, Value};
use crate::trust::replay::{expect, outcome};

/// How a step's thread came to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// It ran before.
    Same,
    /// The thread before it had ended or could not go on.
    Free,
    /// The thread before it could have gone on.
    Preemption,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The location's initial contents.
    Initial,
    /// An earlier step of the schedule, counted from zero.
    Step(u32),
}

/// One step of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Who.
    pub thread: ThreadId,
    /// Whether that took a context switch.
    pub switch: Switch,
    /// What.
    pub op: Op,
    /// Where in the program.
    pub site: Site,
    /// The value read or picked.
    pub read: Option<Value>,
    /// Who wrote that value.
    pub origin: Option<Origin>,
    /// The value written.
    pub wrote: Option<Value>,
    /// Which alternative was taken where there were several.
    pub choice: u32,
    /// Its happens-before clock, as [`Machine::resume`] takes it.
    pub clock: Vec<u32>,
}

impl Step {
    /// What the machine is told about it. With the clock, that is all it takes to repeat the step,
    /// whatever the memory model.
    pub fn outcome(&self) -> Outcome {
        let update = matches!(self.op, Op::Update { .. });
        Outcome {
            read: self.read.unwrap_or_default(),
            wrote: self.wrote.filter(|_| update),
        }
    }
}

/// A schedule that leads to a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Its steps.
    pub steps: Vec<Step>,
    /// How many of its switches are preemptions.
    pub preemptions: u32,
    /// How often another thread goes on, the start of main not counted.
    pub switches: u32,
}

/// How many states the search for the best schedule may visit before it settles for a good one.
const STATES: usize = 200_000;

/// Turns the part of `graph` that matters for `failure` into a schedule with the fewest
/// switches, among those the one with the fewest preemptions, and runs it: the machine
/// must fail in the same way again, and is left there.
pub fn build<M: Machine, C: Model>(
    machine: &mut M,
    graph: &Graph,
    model: &C,
    failure: &Failure,
) -> Result<Witness, String> {
    let part = Part::of(graph, failure);
    let schedule = part.best_schedule();
    let witness = perform(machine, graph, model, &schedule)?;
    confirm(machine, failure)?;
    Ok(witness)
}

fn confirm<M: Machine>(machine: &M, failure: &Failure) -> Result<(), String> {
    let again = match failure.kind {
        FailureKind::Deadlock | FailureKind::Livelock => {
            let pending = machine.pending(failure.thread);
            matches!(pending, Pending::Op(_) | Pending::Stopped(_)).then_some(failure.kind)
        }
        _ => {
            let again = machine.failure().or_else(|| machine.leftover());
            again.map(|again| again.kind)
        }
    };
    match again {
        Some(kind) if kind == failure.kind => Ok(()),
        other => Err(format!(
            "{:?} ({}) was not seen again when its schedule was repeated, but {other:?}",
            failure.kind, failure.message
        )),
    }
}

/// Runs `schedule`, operation by operation.
fn perform<M: Machine, C: Model>(
    machine: &mut M,
    graph: &Graph,
    model: &C,
    schedule: &[(Slot, Switch)],
) -> Result<Witness, String> {
    machine.reset();
    let mut step_of = HashMap::new();
    let mut steps = Vec::with_capacity(schedule.len());
    for &(first, switch) in schedule {
        let begin = graph.event(first);
        let last = operation_end(graph, first);
        let end = graph.event(last);
        expect(machine, begin)?;
        let thread = begin.id.thread;
        let origin = begin.kind.reads().then(|| match begin.source {
            INIT => Origin::Initial,
            source => Origin::Step(step_of[&source]),
        });
        let picked = matches!(begin.op, Op::Choose { .. });
        steps.push(Step {
            thread,
            switch,
            op: begin.op,
            site: machine.site(thread),
            read: (begin.kind.reads() || picked).then_some(begin.read),
            origin,
            wrote: end.kind.writes().then_some(end.wrote),
            choice: begin.choice,
            clock: model.happens_before(graph, last).to_vec(),
        });
        step_of.insert(last, steps.len() as u32 - 1);
        machine.resume(thread, outcome(end), model.happens_before(graph, last));
        if machine.pending(thread) == Pending::Stopped(Stop::Failed) {
            // In this order the failure may show earlier than where the search met it.
            break;
        }
    }
    let count = |wanted: Switch| steps.iter().filter(|step| step.switch == wanted).count() as u32;
    let preemptions = count(Switch::Preemption);
    let switches = preemptions + count(Switch::Free);
    Ok(Witness {
        steps,
        preemptions,
        switches,
    })
}

/// The write half of an update that writes, otherwise the event itself.
fn operation_end(graph: &Graph, slot: Slot) -> Slot {
    let event = graph.event(slot);
    match event.kind {
        Kind::ReadHalf => graph.thread(event.id.thread)[event.id.index as usize + 1],
        _ => slot,
    }
}

/// A causally closed part of a graph.
struct Part<'g> {
    graph: &'g Graph,
    /// Of each thread, how many events belong to it.
    ends: Vec<u32>,
}

/// How far each thread has come, and who runs.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct State {
    done: Vec<u32>,
    running: ThreadId,
}

/// Context switches, then preemptions.
type Cost = (u32, u32);

impl<'g> Part<'g> {
    /// What happens before the failure. A deadlock needs everything, other failures only what
    /// their threads know of.
    fn of(graph: &'g Graph, failure: &Failure) -> Part<'g> {
        let mut ends = vec![0; graph.threads()];
        let stuck = matches!(
            failure.kind,
            FailureKind::Deadlock | FailureKind::Livelock | FailureKind::Leak
        );
        if stuck {
            for (thread, end) in ends.iter_mut().enumerate() {
                *end = graph.thread(ThreadId(thread as u32)).len() as u32;
            }
        } else {
            let other = failure.other.as_ref().map(|other| other.thread);
            for thread in [failure.thread].into_iter().chain(other) {
                let Some(last) = graph.last(thread) else {
                    continue;
                };
                for (end, &counted) in ends.iter_mut().zip(graph.causality(last)) {
                    *end = (*end).max(counted);
                }
            }
        }
        let mut part = Part { graph, ends };
        part.drop_unfinished();
        part
    }

    /// Parked reads and lone read halves are not performed; a join counts one event too many.
    fn drop_unfinished(&mut self) {
        for (thread, end) in self.ends.iter_mut().enumerate() {
            let events = self.graph.thread(ThreadId(thread as u32));
            *end = (*end).min(events.len() as u32);
            if let Some(&last) = events[..*end as usize].last()
                && matches!(self.graph.event(last).kind, Kind::Parked | Kind::ReadHalf)
            {
                *end -= 1;
            }
        }
    }

    /// The first event of the next operation of `thread`.
    fn next(&self, done: &[u32], thread: ThreadId) -> Option<Slot> {
        let at = done[thread.index()];
        (at < self.ends[thread.index()]).then(|| self.graph.thread(thread)[at as usize])
    }

    fn inside(&self, slot: Slot) -> bool {
        slot != INIT && self.graph.counted(&self.ends, slot)
    }

    /// Whether everything that has to come before the operation at `slot` is done.
    fn ready(&self, done: &[u32], slot: Slot) -> bool {
        let graph = self.graph;
        let performed = |slot: Slot| slot == INIT || graph.counted(done, slot);
        let event = graph.event(slot);
        if event.id.index == 0 && !graph.predecessor(event.id).is_none_or(performed) {
            return false;
        }
        match event.op {
            Op::Join { child } => return self.next(done, child).is_none(),
            Op::JoinAll => {
                let mut others = (0..done.len() as u32).map(ThreadId);
                return others
                    .all(|other| other == event.id.thread || self.next(done, other).is_none());
            }
            _ => {}
        }
        let Some(location) = event.op.location() else {
            return true;
        };
        if event.kind.reads() && !performed(event.source) {
            return false;
        }
        if event.kind.reads() {
            // Nothing may be written over the source before it is read.
            let later = graph.later_writes(location, event.source);
            if later.iter().any(|&write| graph.counted(done, write)) {
                return false;
            }
        }
        let write = operation_end(graph, slot);
        if !graph.event(write).kind.writes() {
            return true;
        }
        let position = graph.position(location, write);
        let earlier = &graph.coherence(location)[..position - 1];
        let written = earlier.iter().all(|&w| !self.inside(w) || performed(w));
        let reads = graph.reads(location).iter().all(|&read| {
            let source = graph.event(read).source;
            read == slot
                || !self.inside(read)
                || performed(read)
                || graph.position(location, source) >= position
        });
        written && reads
    }

    /// Whether leaving `thread` at this point is free: it has nothing left to do here, or would
    /// have to wait.
    fn leaves_freely(&self, done: &[u32], thread: ThreadId) -> bool {
        let at = done[thread.index()];
        let Some(&slot) = self.graph.thread(thread).get(at as usize) else {
            return true;
        };
        let event = self.graph.event(slot);
        // Where a thread parks in the end it may still have been able to go on before.
        if at >= self.ends[thread.index()] && event.kind != Kind::Parked {
            return true;
        }
        match event.op {
            Op::Join { child } => self.next(done, child).is_some(),
            Op::JoinAll => (0..done.len() as u32)
                .map(ThreadId)
                .any(|other| other != thread && self.next(done, other).is_some()),
            Op::Update { at, function, .. } => self
                .value(done, at)
                .is_some_and(|value| function.apply(value) == Effect::Block),
            _ => false,
        }
    }

    /// What `location` holds at this point, if anybody in the graph knows.
    fn value(&self, done: &[u32], location: Location) -> Option<Value> {
        let mut writes = self.graph.coherence(location).iter().rev();
        match writes.find(|&&write| self.graph.counted(done, write)) {
            Some(&write) => Some(self.graph.event(write).wrote),
            None => {
                let mut readers = self.graph.readers(location, INIT);
                readers.next().map(|reader| self.graph.event(reader).read)
            }
        }
    }

    fn advance(&self, state: &State, slot: Slot) -> State {
        let last = self.graph.event(operation_end(self.graph, slot)).id;
        let mut done = state.done.clone();
        done[last.thread.index()] = last.index + 1;
        State {
            done,
            running: last.thread,
        }
    }

    /// The operations that can come next, with how the switch to them counts. If the running
    /// thread can go on, it does, unless leaving it later could be dearer.
    fn successors(&self, state: &State) -> Vec<(Slot, Switch)> {
        let running = state.running;
        let done = &state.done;
        let own = self
            .next(done, running)
            .filter(|&slot| self.ready(done, slot));
        if let Some(slot) = own {
            let event = self.graph.event(slot);
            let last = event.id.index + 1 >= self.ends[running.index()];
            if !last && event.kind != Kind::Write {
                return vec![(slot, Switch::Same)];
            }
        }
        let switch = if self.leaves_freely(done, running) {
            Switch::Free
        } else {
            Switch::Preemption
        };
        let others = (0..done.len() as u32).map(ThreadId);
        let others = others
            .filter(|&thread| thread != running)
            .filter_map(|thread| self.next(done, thread))
            .filter(|&slot| self.ready(done, slot))
            .map(|slot| (slot, switch));
        own.map(|slot| (slot, Switch::Same))
            .into_iter()
            .chain(others)
            .collect()
    }

    fn start(&self) -> State {
        State {
            done: vec![0; self.ends.len()],
            running: ThreadId::MAIN,
        }
    }

    /// Dijkstra's search over states; where it grows too large, the greedy schedule.
    fn best_schedule(&self) -> Vec<(Slot, Switch)> {
        let mut queue = BinaryHeap::new();
        let mut best: HashMap<State, Cost> = HashMap::new();
        let mut reached: HashMap<State, (State, Slot, Switch)> = HashMap::new();
        let start = self.start();
        best.insert(start.clone(), (0, 0));
        queue.push(Reverse(((0, 0), start)));
        while let Some(Reverse((cost, state))) = queue.pop() {
            if best[&state] < cost {
                continue;
            }
            if state.done == self.ends {
                return unwind(&reached, state);
            }
            if best.len() > STATES {
                break;
            }
            for (slot, switch) in self.successors(&state) {
                let next = self.advance(&state, slot);
                let cost = add(cost, switch);
                if best.get(&next).is_none_or(|&known| cost < known) {
                    best.insert(next.clone(), cost);
                    reached.insert(next.clone(), (state.clone(), slot, switch));
                    queue.push(Reverse((cost, next)));
                }
            }
        }
        self.greedy_schedule()
    }

    fn greedy_schedule(&self) -> Vec<(Slot, Switch)> {
        let mut state = self.start();
        let mut schedule = Vec::new();
        while let Some(&(slot, switch)) = self.successors(&state).first() {
            schedule.push((slot, switch));
            state = self.advance(&state, slot);
        }
        schedule
    }
}

fn add((switches, preemptions): Cost, switch: Switch) -> Cost {
    match switch {
        Switch::Same => (switches, preemptions),
        Switch::Free => (switches + 1, preemptions),
        Switch::Preemption => (switches + 1, preemptions + 1),
    }
}

fn unwind(
    reached: &HashMap<State, (State, Slot, Switch)>,
    mut state: State,
) -> Vec<(Slot, Switch)> {
    let mut schedule = Vec::new();
    while let Some((before, slot, switch)) = reached.get(&state) {
        schedule.push((*slot, *switch));
        state = before.clone();
    }
    schedule.reverse();
    schedule
}
