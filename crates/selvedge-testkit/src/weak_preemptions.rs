//! The number of preemptions of each execution that a memory model allows, from its definition.
//!
//! A *part* of an execution is a set of its steps that has the causes of each of them: what comes
//! before it in program order, what it reads from, the creation of its thread, all of a thread it
//! joins. Some parts can be put in an order in which each read sees the newest write; such a part
//! has the least number of preemptions of these orders. The number of the execution is the largest
//! among its parts.

use std::collections::{HashMap, VecDeque};

use selvedge_core::op::Effect;
use selvedge_core::{EventId, Location, Machine, Op, Value};

use crate::axioms::Axioms;
use crate::brute::End;
use crate::candidates::{Step, Trace, for_each_end};
use crate::preemptions::{Preemptions, fails};

/// Every execution that `model` allows with its number. `None` if there are more than `limit` prefixes.
pub fn allowed_preemptions<M: Machine>(
    machine: &mut M,
    model: Axioms,
    limit: usize,
) -> Option<Preemptions> {
    let mut found = Preemptions::default();
    let mut ended = |machine: &M, trace: &Trace, execution, end| {
        let number = || Steps::new(machine, trace).number();
        if matches!(end, End::Complete | End::Assumed) && fails(machine) {
            let least = found.fails.unwrap_or(u32::MAX);
            found.fails = Some(least.min(number()));
        }
        match end {
            End::Complete => drop(found.complete.insert(execution, number())),
            End::Stuck => drop(found.stuck.insert(execution, number())),
            End::Assumed | End::Stale => {}
        }
    };
    for_each_end(machine, model, limit, &mut ended)?;
    Some(found)
}

/// How many steps of each thread.
type Counts = Vec<u32>;

/// The steps of an execution with the relations between them.
struct Steps<'t> {
    threads: Vec<Vec<Node<'t>>>,
    trace: &'t Trace,
    initial: HashMap<Location, Value>,
}

struct Node<'t> {
    step: &'t Step,
    /// The steps that cause it.
    causes: Vec<EventId>,
    /// Further steps before it, because it reads or overwrites it, or reads what it overwrites.
    earlier: Vec<EventId>,
}

fn counts(counts: &[u32], id: EventId) -> bool {
    counts[id.thread.index()] > id.index
}

impl<'t> Steps<'t> {
    fn new<M: Machine>(machine: &M, trace: &'t Trace) -> Steps<'t> {
        let mut steps = Steps {
            threads: (0..machine.threads()).map(|_| Vec::new()).collect(),
            trace,
            initial: HashMap::new(),
        };
        for step in &trace.steps {
            if let Some(at) = step.op.location() {
                steps.initial.insert(at, machine.initial(at));
            }
            let node = Node {
                step,
                causes: causes(trace, step),
                earlier: earlier(trace, step),
            };
            steps.threads[step.id.thread.index()].push(node);
        }
        steps
    }

    /// The largest number among the parts. A part of a part that was measured has no larger one.
    fn number(&self) -> u32 {
        let whole: Counts = self.threads.iter().map(|own| own.len() as u32).collect();
        let mut measured: Vec<Counts> = Vec::new();
        let mut largest = 0;
        let mut parts = vec![whole];
        let mut next = 0;
        while let Some(part) = parts.get(next).cloned() {
            next += 1;
            let within = |other: &Counts| part.iter().zip(other).all(|(part, other)| part <= other);
            if measured.iter().any(within) {
                continue;
            }
            if self.has_causes(&part)
                && let Some(number) = self.least(&part)
            {
                largest = largest.max(number);
                measured.push(part);
                continue;
            }
            for thread in 0..part.len() {
                let mut smaller = part.clone();
                if part[thread] > 0 {
                    smaller[thread] -= 1;
                    if !parts.contains(&smaller) {
                        parts.push(smaller);
                    }
                }
            }
        }
        largest
    }

    fn has_causes(&self, part: &[u32]) -> bool {
        let within = self.threads.iter().zip(part);
        let mut nodes = within.flat_map(|(own, &end)| &own[..end as usize]);
        nodes.all(|node| node.causes.iter().all(|&cause| counts(part, cause)))
    }

    /// The least number of preemptions over the orders of `part`, if it has one.
    fn least(&self, part: &Counts) -> Option<u32> {
        let start = (vec![0; part.len()], 0);
        let mut best: HashMap<(Counts, usize), u32> = HashMap::from([(start.clone(), 0)]);
        let mut queue = VecDeque::from([(0, start)]);
        while let Some((cost, state)) = queue.pop_front() {
            if best[&state] < cost {
                continue;
            }
            let (done, running) = state;
            if done == *part {
                return Some(cost);
            }
            let goes_on = done[running] < part[running] && !self.waits(part, &done, running);
            for thread in (0..part.len()).filter(|&thread| self.is_ready(part, &done, thread)) {
                let price = u32::from(goes_on && thread != running);
                let mut next = done.clone();
                next[thread] += 1;
                let next = (next, thread);
                if best.get(&next).is_none_or(|&known| cost + price < known) {
                    best.insert(next.clone(), cost + price);
                    match price {
                        0 => queue.push_front((cost, next)),
                        _ => queue.push_back((cost + price, next)),
                    }
                }
            }
        }
        None
    }

    fn is_ready(&self, part: &[u32], done: &[u32], thread: usize) -> bool {
        if done[thread] == part[thread] {
            return false;
        }
        let node = &self.threads[thread][done[thread] as usize];
        let mut before = node.causes.iter().chain(&node.earlier);
        before.all(|&id| counts(done, id) || !counts(part, id))
    }

    /// Whether the next step of `thread` could not be taken.
    fn waits(&self, part: &[u32], done: &[u32], thread: usize) -> bool {
        let step = self.threads[thread][done[thread] as usize].step;
        let unfinished = |other: usize| done[other] < part[other];
        match step.op {
            Op::Join { child } => unfinished(child.index()),
            Op::JoinAll => (0..part.len()).any(|other| other != thread && unfinished(other)),
            Op::Update { at, function, .. } => {
                let writes = self.trace.coherence.get(&at).map_or(&[][..], Vec::as_slice);
                let newest = writes.iter().rfind(|&&write| counts(done, write));
                let written = newest.and_then(|id| {
                    let node = &self.threads[id.thread.index()][id.index as usize];
                    node.step.wrote
                });
                let value = written.unwrap_or(self.initial[&at]);
                function.apply(value) == Effect::Block
            }
            _ => false,
        }
    }
}

fn causes(trace: &Trace, step: &Step) -> Vec<EventId> {
    let others = trace.steps.iter().filter(|other| {
        let thread = other.id.thread;
        let before = thread == step.id.thread && other.id.index < step.id.index;
        let source = step.source == Some(Some(other.id));
        let created = other.op
            == Op::Create {
                child: step.id.thread,
            };
        let joined = match step.op {
            Op::Join { child } => thread == child,
            Op::JoinAll => thread != step.id.thread,
            _ => false,
        };
        before || source || created || joined
    });
    others.map(|other| other.id).collect()
}

fn earlier(trace: &Trace, step: &Step) -> Vec<EventId> {
    let Some(at) = step.op.location() else {
        return Vec::new();
    };
    if step.wrote.is_none() {
        return Vec::new();
    }
    let writes = trace.coherence[&at].iter();
    let overwritten: Vec<EventId> = writes.copied().take_while(|&id| id != step.id).collect();
    let reads = trace.steps.iter().filter(|other| {
        let known = match other.source {
            Some(Some(source)) => overwritten.contains(&source),
            Some(None) => true,
            None => false,
        };
        known && other.op.location() == Some(at) && other.id != step.id
    });
    let reads: Vec<EventId> = reads.map(|other| other.id).collect();
    overwritten.into_iter().chain(reads).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavour, ScriptMachine, least_preemptions, random_program};

    #[test]
    fn sequentially_consistent_executions_have_the_number_of_their_interleavings() {
        for flavour in Flavour::ALL {
            for seed in 0..30 {
                let mut machine = ScriptMachine::new(random_program(seed, flavour));
                let Some(parts) = allowed_preemptions(&mut machine, Axioms::Sc, 1_000) else {
                    continue;
                };
                let least = least_preemptions(&mut machine, 100_000).expect("it is small");
                assert_eq!(parts.complete, least.complete, "{flavour:?} {seed}");
            }
        }
    }

    /// The order that [`Steps::number`] and the search rely on.
    #[test]
    fn no_part_of_what_has_an_order_has_a_larger_number() {
        for seed in 0..60 {
            let mut machine =
                ScriptMachine::new(random_program(seed, Flavour::ALL[seed as usize % 2]));
            let mut compare = |machine: &ScriptMachine, trace: &Trace, _, _| {
                let steps = Steps::new(machine, trace);
                let whole: Counts = steps.threads.iter().map(|own| own.len() as u32).collect();
                let most = steps.least(&whole).expect("this is sequential consistency");
                let mut part = vec![0; whole.len()];
                while let Some(thread) =
                    (0..part.len()).find(|&thread| part[thread] < whole[thread])
                {
                    part[thread] += 1;
                    part[..thread].fill(0);
                    if steps.has_causes(&part) {
                        let least = steps.least(&part).expect("a part of an order is an order");
                        assert!(least <= most, "{part:?} of {trace:?}");
                    }
                }
            };
            for_each_end(&mut machine, Axioms::Sc, 60, &mut compare);
        }
    }
}
