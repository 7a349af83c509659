//! A failing schedule of a constrained program as one of the program itself.

use crate::ids::{Location, ThreadId};
use crate::op::Op;
use crate::report::{Bug, Waiting};
use crate::witness::{Origin, Step, Switch, Witness};

use super::constrained::moved;

/// Takes what sets and awaits the `flags` first locations out of `bug`, and puts the `inputs` in
/// that main was given in place of choices.
pub(super) fn strip(bug: &Bug, flags: u32, inputs: &[u32]) -> Bug {
    let own = |location: Option<Location>| location.is_none_or(|location| location.0 >= flags);
    let waiting = bug.waiting.iter().map(|waiting| Waiting {
        op: waiting
            .op
            .filter(|op| own(op.location()))
            .map(|op| unshift(op, flags)),
        ..waiting.clone()
    });
    let mut witness = strip_witness(&bug.witness, flags);
    let choices = witness
        .steps
        .iter_mut()
        .filter(|step| step.thread == ThreadId::MAIN && matches!(step.op, Op::Choose { .. }));
    for (step, &input) in choices.zip(inputs) {
        step.read = Some(input.into());
        step.choice = input;
    }
    Bug {
        failure: bug.failure.clone(),
        witness,
        waiting: waiting.collect(),
    }
}

fn unshift(op: Op, flags: u32) -> Op {
    moved(op, |location| Location(location.0 - flags))
}

/// Whether some thread of a stuck execution waits for a flag: enforcement would be to blame.
pub(super) fn waits_for_flag(bug: &Bug, flags: u32) -> bool {
    let mut ops = bug.waiting.iter().filter_map(|waiting| waiting.op);
    ops.any(|op| op.location().is_some_and(|location| location.0 < flags))
}

fn strip_witness(witness: &Witness, flags: u32) -> Witness {
    let own = |step: &Step| step.op.location().is_none_or(|at| at.0 >= flags);
    // Where each step goes, and for each thread which of its events are the program's own.
    let mut places = Vec::with_capacity(witness.steps.len());
    let mut events: Vec<Vec<u32>> = Vec::new();
    let mut next = 0;
    for step in &witness.steps {
        places.push(next);
        next += u32::from(own(step));
        if events.len() <= step.thread.index() {
            events.resize(step.thread.index() + 1, vec![0]);
        }
        let counts = &mut events[step.thread.index()];
        let width = if step.outcome().wrote.is_some() { 2 } else { 1 };
        for _ in 0..width {
            let last = counts[counts.len() - 1];
            counts.push(last + u32::from(own(step)));
        }
    }
    let translate = |thread: usize, count: u32| match events.get(thread) {
        Some(counts) => {
            let last = counts.len() - 1;
            let beyond = (count as usize).saturating_sub(last);
            counts[(count as usize).min(last)] + beyond as u32
        }
        None => count,
    };
    let mut steps: Vec<Step> = Vec::new();
    let mut running = ThreadId::MAIN;
    let mut switch = Switch::Same;
    for step in &witness.steps {
        if step.switch != Switch::Same && switch != Switch::Preemption {
            switch = step.switch;
        }
        if !own(step) {
            continue;
        }
        let clock = step.clock.iter().enumerate();
        steps.push(Step {
            switch: if step.thread == running {
                Switch::Same
            } else {
                switch
            },
            op: unshift(step.op, flags),
            origin: step.origin.map(|origin| match origin {
                Origin::Step(at) => Origin::Step(places[at as usize]),
                Origin::Initial => Origin::Initial,
            }),
            newer: step.newer.iter().map(|&at| places[at as usize]).collect(),
            clock: clock
                .map(|(thread, &count)| translate(thread, count))
                .collect(),
            ..step.clone()
        });
        running = step.thread;
        switch = Switch::Same;
    }
    Witness::of(steps)
}
