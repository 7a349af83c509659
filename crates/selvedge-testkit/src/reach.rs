//! Every state of a machine, by plain search over copies of it.

use std::collections::{BTreeSet, HashMap, VecDeque};

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::{
    Effect, Function, Machine, Op, Outcome, Pending, StateMachine, Stop, ThreadId, Value,
};

use crate::state_script::StateScript;

/// A whole state.
pub type Full = Vec<Vec<u8>>;

/// The states that can be reached.
#[derive(Clone, Debug, Default)]
pub struct Reachable {
    /// All states. States after a failure or a race are not explored.
    pub states: BTreeSet<Full>,
    /// States without a next step and without a failure.
    pub complete: BTreeSet<Full>,
    /// States in which a thread waits forever.
    pub stuck: BTreeSet<Full>,
    /// States in which a thread has failed.
    pub failed: BTreeSet<Full>,
    /// States in which two threads are about to race.
    pub races: BTreeSet<Full>,
    /// The fewest context switches to something that is wrong.
    pub least_switches: Option<u32>,
    /// The fewest steps to something that is wrong.
    pub least_steps: Option<u32>,
    /// How many steps there are in all, from states that are alright.
    pub transitions: u64,
}

impl Reachable {
    /// Whether something can go wrong.
    pub fn fails(&self) -> bool {
        self.least_steps.is_some()
    }
}

/// The sort of a state.
pub(crate) enum Sort {
    Alright,
    Complete,
    Blocked,
    Stuck,
    Failed,
    Race,
}

/// Visits every state of `machine`. `None` if there are more than `limit`.
pub fn reachable(machine: &StateScript, limit: usize) -> Option<Reachable> {
    let mut found = Reachable::default();
    let mut start = machine.clone();
    start.reset();
    let mut queue = VecDeque::from([(start.clone(), 0)]);
    found.states.insert(start.state());
    while let Some((machine, steps)) = queue.pop_front() {
        let state = machine.state();
        let wrong = match sort(&machine) {
            Sort::Alright => {
                for (_, _, next) in successors(&machine) {
                    found.transitions += 1;
                    if found.states.insert(next.state()) {
                        queue.push_back((next, steps + 1));
                    }
                }
                false
            }
            Sort::Complete => {
                found.complete.insert(state);
                false
            }
            Sort::Blocked => false,
            Sort::Stuck => found.stuck.insert(state),
            Sort::Failed => found.failed.insert(state),
            Sort::Race => found.races.insert(state),
        };
        if wrong {
            found.least_steps.get_or_insert(steps);
        }
        if found.states.len() > limit {
            return None;
        }
    }
    found.least_switches = least_switches(start);
    Some(found)
}

/// Breadth-first over states with the thread that ran last; a step of the same thread costs nothing.
fn least_switches(start: StateScript) -> Option<u32> {
    let mut best: HashMap<(Full, ThreadId), u32> = HashMap::new();
    let mut queue = VecDeque::from([(start, ThreadId::MAIN, 0)]);
    while let Some((machine, last, cost)) = queue.pop_front() {
        let known = best.entry((machine.state(), last)).or_insert(u32::MAX);
        if *known <= cost {
            continue;
        }
        *known = cost;
        match sort(&machine) {
            Sort::Alright => {
                for (thread, _, next) in successors(&machine) {
                    if thread == last {
                        queue.push_front((next, thread, cost));
                    } else {
                        queue.push_back((next, thread, cost + 1));
                    }
                }
            }
            Sort::Complete | Sort::Blocked => {}
            Sort::Stuck | Sort::Failed | Sort::Race => return Some(cost),
        }
    }
    None
}

pub(crate) fn sort(machine: &StateScript) -> Sort {
    let threads: Vec<ThreadId> = (0..machine.threads() as u32).map(ThreadId).collect();
    let any = |stop| {
        let mut all = threads.iter();
        all.any(|&thread| machine.pending(thread) == Pending::Stopped(stop))
    };
    if any(Stop::Failed) {
        return Sort::Failed;
    }
    for (n, &one) in threads.iter().enumerate() {
        for &other in &threads[n + 1..] {
            if let (Some(one), Some(other)) = (machine.access(one), machine.access(other))
                && one.races_with(other)
            {
                return Sort::Race;
            }
        }
    }
    if threads
        .iter()
        .any(|&thread| waits_for_itself(machine, thread))
    {
        return Sort::Stuck;
    }
    if threads.iter().any(|&thread| choices(machine, thread) > 0) {
        return Sort::Alright;
    }
    if any(Stop::Assumed) {
        return Sort::Blocked;
    }
    let waits = |&thread: &ThreadId| matches!(machine.pending(thread), Pending::Op(_));
    if threads.iter().any(waits) {
        Sort::Stuck
    } else {
        Sort::Complete
    }
}

/// Whether `thread` waits for a mutex, or the end of a thread, that only comes after it has gone on
/// itself.
fn waits_for_itself(machine: &StateScript, thread: ThreadId) -> bool {
    let mut at = thread;
    for _ in 0..machine.threads() {
        at = match machine.pending(at) {
            Pending::Op(Op::Join { child }) => child,
            Pending::Op(Op::Update {
                at: mutex,
                function: Function::Object(ObjectFunction::MutexLock { .. }),
                ..
            }) if machine.value(mutex) != FREE => ThreadId(machine.value(mutex) as u32 - 1),
            _ => return false,
        };
        if at == thread {
            return true;
        }
    }
    false
}

fn choices(machine: &StateScript, thread: ThreadId) -> u32 {
    match machine.pending(thread) {
        Pending::Op(Op::Choose { alternatives }) => alternatives,
        Pending::Op(Op::Join { child }) => u32::from(machine.pending(child).has_ended()),
        Pending::Op(Op::Update { at, function, .. }) => match function.apply(machine.value(at)) {
            Effect::Block => 0,
            Effect::Choose(alternatives) => alternatives,
            Effect::Write(_) | Effect::Keep => 1,
        },
        Pending::Op(_) => 1,
        _ => 0,
    }
}

/// The enabled threads with their choices, and the next state of each.
pub(crate) fn successors(machine: &StateScript) -> Vec<(ThreadId, u32, StateScript)> {
    let mut all = Vec::new();
    for thread in (0..machine.threads() as u32).map(ThreadId) {
        for choice in 0..choices(machine, thread) {
            let Pending::Op(op) = machine.pending(thread) else {
                unreachable!("it has choices");
            };
            let outcome = match op {
                Op::Load { at, .. } => (machine.value(at), None),
                Op::Choose { .. } => (Value::from(choice), None),
                Op::Update { at, function, .. } => {
                    let read = machine.value(at);
                    match function.apply(read) {
                        Effect::Write(value) => (read, Some(value)),
                        Effect::Choose(_) => (read, Some(function.choose(read, choice))),
                        Effect::Keep | Effect::Block => (read, None),
                    }
                }
                _ => (0, None),
            };
            let mut next = machine.clone();
            let (read, wrote) = outcome;
            next.resume(thread, Outcome { read, wrote }, &[]);
            all.push((thread, choice, next));
        }
    }
    all
}
