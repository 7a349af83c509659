//! The least number of preemptions of each class of executions, or of whatever else switches cost,
//! by trying every interleaving.

use std::collections::{BTreeMap, HashMap, HashSet};

use selvedge_core::interleave::Run;
use selvedge_core::{Machine, Pending, Stop, ThreadId};

use crate::brute::{End, end, record};
use crate::execution::Execution;

/// Every class with the least number of preemptions over its interleavings: main runs first, and
/// leaving a thread that could take a step is a preemption.
#[derive(Clone, Debug, Default)]
pub struct Preemptions {
    /// The classes of complete executions.
    pub complete: HashMap<Execution, u32>,
    /// The classes of executions that end with a thread that waits for good, where it gets by then.
    pub stuck: HashMap<Execution, u32>,
    /// The least number of an execution in which a thread fails, if one can. Executions in which a thread spins on
    /// values that are out of date do not count.
    pub fails: Option<u32>,
}

impl Preemptions {
    /// The classes of complete executions with at most `bound` preemptions.
    pub fn within(&self, bound: u32) -> HashSet<Execution> {
        let all = self.complete.iter();
        let within = all.filter(|&(_, &preemptions)| preemptions <= bound);
        within.map(|(execution, _)| execution.clone()).collect()
    }

    /// The smallest bound that leaves no complete execution out.
    pub fn largest(&self) -> u32 {
        self.complete.values().copied().max().unwrap_or(0)
    }
}

/// Every class with the least number of preemptions. `None` if there are more than `limit` states.
pub fn least_preemptions<M: Machine>(machine: &mut M, limit: usize) -> Option<Preemptions> {
    least_cost(machine, limit, |running, thread, enabled| {
        u32::from(thread != running && enabled[running.index()])
    })
}

/// The same with a price for each step: from the thread that ran before, the one that takes the step, and
/// those that could have taken it. Searches the interleavings in the order of their cost; two of them that are
/// equivalent so far and have the same thread running have the same future.
pub fn least_cost<M: Machine>(
    machine: &mut M,
    limit: usize,
    price: impl Fn(ThreadId, ThreadId, &[bool]) -> u32,
) -> Option<Preemptions> {
    let mut found = Preemptions::default();
    let mut visited: HashSet<(Execution, ThreadId)> = HashSet::new();
    let mut queue = BTreeMap::from([(0, vec![Vec::<(ThreadId, u32)>::new()])]);
    while let Some(mut cheapest) = queue.first_entry() {
        let cost = *cheapest.key();
        let Some(decisions) = cheapest.get_mut().pop() else {
            cheapest.remove();
            continue;
        };
        let mut run = Run::new(machine);
        let mut newest = HashMap::new();
        let mut execution = Execution::default();
        for &(thread, choice) in &decisions {
            record(&mut run, &mut execution, &mut newest, thread, choice);
        }
        let threads = run.machine().threads();
        execution.threads.resize(threads, Vec::new());
        let running = decisions
            .last()
            .map_or(ThreadId::MAIN, |&(thread, _)| thread);
        let alternatives: Vec<u32> = (0..threads as u32)
            .map(|thread| run.alternatives(ThreadId(thread)))
            .collect();
        let enabled: Vec<bool> = alternatives.iter().map(|&ways| ways > 0).collect();
        if !enabled.contains(&true) {
            let end = end(run.machine(), &execution, &newest);
            if matches!(end, End::Complete | End::Assumed) && fails(run.machine()) {
                found.fails.get_or_insert(cost);
            }
            match end {
                End::Complete => drop(found.complete.entry(execution).or_insert(cost)),
                End::Stuck => drop(found.stuck.entry(execution).or_insert(cost)),
                End::Assumed | End::Stale => {}
            }
            continue;
        }
        if !visited.insert((execution, running)) {
            continue;
        }
        if visited.len() > limit {
            return None;
        }
        for thread in (0..threads as u32).map(ThreadId) {
            for choice in 0..alternatives[thread.index()] {
                let mut next = decisions.clone();
                next.push((thread, choice));
                let cost = cost + price(running, thread, &enabled);
                queue.entry(cost).or_default().push(next);
            }
        }
    }
    Some(found)
}

/// Whether some thread has failed.
pub(crate) fn fails<M: Machine>(machine: &M) -> bool {
    let mut all = (0..machine.threads() as u32).map(ThreadId);
    all.any(|thread| machine.pending(thread) == Pending::Stopped(Stop::Failed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Instruction as I;
    use crate::{Flavour, Program, ScriptMachine, brute_force, random_program};

    #[test]
    fn only_the_racing_middle_of_a_thread_costs_a_preemption() {
        let program = Program::of_workers(vec![
            vec![I::Load(0, 0), I::Load(1, 0)],
            vec![I::Store(0, 1)],
        ]);
        let mut machine = ScriptMachine::new(program);
        let found = least_preemptions(&mut machine, 1000).expect("this is small");
        let mut numbers: Vec<u32> = found.complete.values().copied().collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 0, 1]);
    }

    #[test]
    fn the_classes_are_those_of_brute_force() {
        for flavour in Flavour::ALL {
            for seed in 0..40 {
                let program = random_program(seed, flavour);
                let mut machine = ScriptMachine::new(program);
                let Some(found) = least_preemptions(&mut machine, 20_000) else {
                    continue;
                };
                let all = brute_force(&mut machine, 20_000).expect("it has fewer states");
                assert_eq!(found.within(u32::MAX), all.complete);
                assert_eq!(found.stuck.len(), all.stuck.len());
            }
        }
    }
}
