//! Replays the steps that lead to a state, as a witness.

use std::collections::HashMap;

use super::space::{StateStep, choices, perform};
use crate::ids::ThreadId;
use crate::op::Op;
use crate::saved::StateMachine;
use crate::witness::{self, Origin, Switch, Witness};

/// Runs `schedule` from the beginning and writes down what each step does. The machine is left at
/// its end.
pub fn replay<M: StateMachine>(machine: &mut M, schedule: &[StateStep]) -> Result<Witness, String> {
    machine.reset();
    let mut newest = HashMap::new();
    let mut steps: Vec<witness::Step> = Vec::with_capacity(schedule.len());
    let mut running = ThreadId::MAIN;
    for (n, &step) in schedule.iter().enumerate() {
        let StateStep { thread, choice } = step;
        if choices(machine, thread) <= choice {
            return Err(format!(
                "{thread} did something else when it was run again: step {} cannot be repeated",
                n + 1
            ));
        }
        let switch = match running {
            same if same == thread => Switch::Same,
            other if choices(machine, other) > 0 => Switch::Preemption,
            _ => Switch::Free,
        };
        running = thread;
        let site = machine.site(thread);
        let performed = perform(machine, step);
        let op = performed.op;
        let reads = matches!(op, Op::Load { .. } | Op::Update { .. } | Op::Choose { .. });
        let origin = op.location().filter(|_| reads).map(|at| {
            let step = newest.get(&at).copied();
            step.map_or(Origin::Initial, Origin::Step)
        });
        let wrote = match op {
            // The value of a plain or volatile store is known only after it has been performed.
            Op::Store { at, .. } => Some(machine.value(at)),
            _ => performed.wrote,
        };
        if let (Some(at), Some(_)) = (op.location(), wrote) {
            newest.insert(at, n as u32);
        }
        steps.push(witness::Step {
            thread,
            switch,
            op,
            site,
            read: reads.then_some(performed.read),
            origin,
            wrote,
            choice,
            newer: Vec::new(),
            clock: Vec::new(),
        });
    }
    Ok(Witness::of(steps))
}
