//! From a graph to a schedule that people can read: the one with the fewest context switches.
//!
//! A graph of a weak memory model may have no schedule in which each read sees the newest write. Then
//! the steps come in an order that respects causality, with as few steps as possible that
//! do not see, or go behind, a write that was made before them; [`Step::newer`] tells which.

mod schedule;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::failure::{Failure, FailureKind};
use crate::graph::{Graph, INIT, Slot};
use crate::ids::{Site, ThreadId};
use crate::linear::operation_end;
use crate::machine::{Machine, Outcome, Pending, Stop};
use crate::model::Model;
use crate::op::{Op, Value};
use crate::report::Divergence;
use crate::rewind::{expect, outcome};
use schedule::Part;

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
    /// The thread that takes it.
    pub thread: ThreadId,
    /// Whether that took a context switch.
    pub switch: Switch,
    /// What.
    pub op: Op,
    /// Where in the program.
    pub site: Site,
    /// The value read or picked.
    pub read: Option<Value>,
    /// The origin of that value.
    pub origin: Option<Origin>,
    /// The value written.
    pub wrote: Option<Value>,
    /// The number of the alternative that was taken.
    pub choice: u32,
    /// Earlier steps that wrote what is newer than what this step reads, or than what it writes. Only
    /// weak memory models have such steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub newer: Vec<u32>,
    /// Its happens-before clock, as [`Machine::resume`] takes it.
    pub clock: Vec<u32>,
}

impl Step {
    /// The outcome that the machine is told. With the clock, that is all it takes to repeat the step,
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
    /// For an execution that never ends: the steps from this one on repeat for ever. If there are
    /// none, everything stays as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycle: Option<u32>,
}

impl Witness {
    /// The schedule that consists of `steps`.
    pub(crate) fn of(steps: Vec<Step>) -> Witness {
        let count =
            |wanted: Switch| steps.iter().filter(|step| step.switch == wanted).count() as u32;
        let preemptions = count(Switch::Preemption);
        let switches = preemptions + count(Switch::Free);
        Witness {
            steps,
            preemptions,
            switches,
            cycle: None,
        }
    }
}

/// Turns the part of `graph` that matters for `failure` into a schedule with the fewest
/// switches, among those the one with the fewest preemptions, and runs it: the machine
/// must fail in the same way again, and is left there.
///
/// With a bound on preemptions, the schedule with the fewest preemptions is taken instead. Leaving a thread that has further
/// events in `graph` counts even if these do not matter for the failure. If the part that matters then exceeds the bound, the
/// schedule is one of the whole graph: another thread may have to run to its end.
pub fn build<M: Machine, C: Model>(
    machine: &mut M,
    (graph, model): (&Graph, &C),
    failure: &Failure,
    preemptions: Option<u32>,
) -> Result<Witness, Divergence> {
    let part = Part::of(graph, failure);
    let schedule = match preemptions {
        None => part.best_schedule(),
        Some(bound) => {
            let short = part.fewest_preemptions();
            match preemptions_of(&short) <= bound {
                true => short,
                false => Part::whole(graph).fewest_preemptions(),
            }
        }
    };
    machine.watch(failure);
    let witness = perform(machine, graph, model, &schedule)?;
    confirm(machine, failure)?;
    Ok(witness)
}

fn preemptions_of(schedule: &[(Slot, Switch)]) -> u32 {
    let preemptions = schedule
        .iter()
        .filter(|&&(_, switch)| switch == Switch::Preemption);
    preemptions.count() as u32
}

fn confirm<M: Machine>(machine: &M, failure: &Failure) -> Result<(), Divergence> {
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
        )
        .into()),
    }
}

/// Runs `schedule`, operation by operation.
fn perform<M: Machine, C: Model>(
    machine: &mut M,
    graph: &Graph,
    model: &C,
    schedule: &[(Slot, Switch)],
) -> Result<Witness, Divergence> {
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
        let newer = schedule::newer_writes(graph, first);
        let newer = newer.iter().filter_map(|write| step_of.get(write).copied());
        let mut newer: Vec<u32> = newer.collect();
        newer.sort_unstable();
        steps.push(Step {
            thread,
            switch,
            op: begin.op,
            site: machine.site(thread),
            read: (begin.kind.reads() || picked).then_some(begin.read),
            origin,
            wrote: end.kind.writes().then_some(end.wrote),
            choice: begin.choice,
            newer,
            clock: model.happens_before(graph, last).to_vec(),
        });
        step_of.insert(last, steps.len() as u32 - 1);
        machine.resume(thread, outcome(end), model.happens_before(graph, last));
        if machine.pending(thread) == Pending::Stopped(Stop::Failed) {
            // In this order the failure may show earlier than where the search met it.
            break;
        }
    }
    Ok(Witness::of(steps))
}
