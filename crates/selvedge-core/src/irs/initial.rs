//! The initial trace: one execution that ends well.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::Impossible;
use super::trace::{Step, Trace};
use crate::ids::{Location, ThreadId};
use crate::interleave::Run;
use crate::machine::{Machine, Pending, Stop};
use crate::op::{Op, Value};
use crate::random::Random;

/// How a run came to an end.
pub(super) enum Ended {
    Well(Box<Trace>),
    /// A thread failed, or no thread could go on.
    Badly,
    /// A thread spun from this step on.
    Spun(ThreadId, u32),
    /// An assumption did not hold.
    Dull,
    /// After this many steps it had not come to its end.
    Long,
    /// Something that is not modelled.
    Refused(String),
}

/// Runs `machine` once; `pick` chooses the next thread among the enabled ones, and its alternative.
/// The first choices of main are `inputs`.
pub(super) fn run<M: Machine>(
    machine: &mut M,
    inputs: &[u32],
    mut pick: impl FnMut(&Run<'_, M>, &[ThreadId], &[u32]) -> Option<(ThreadId, u32)>,
) -> Ended {
    let mut run = Run::new(machine);
    let mut trace = Trace::default();
    let mut memory: FxHashMap<Location, Value> = FxHashMap::default();
    let mut taken: Vec<u32> = Vec::new();
    let mut created = 0;
    let mut choices = 0;
    loop {
        if trace.steps.len() > LONGEST {
            return Ended::Long;
        }
        let threads = run.machine().threads();
        taken.resize(threads.max(taken.len()), 0);
        for thread in (0..threads as u32).map(ThreadId) {
            match run.machine().pending(thread) {
                Pending::Stopped(Stop::Failed) => return Ended::Badly,
                Pending::Stopped(Stop::Refused) => {
                    return Ended::Refused(run.machine().refusal().unwrap_or_default());
                }
                Pending::Stopped(Stop::Assumed | Stop::Unrolled) => return Ended::Dull,
                Pending::Stopped(Stop::Exited) => return Ended::Well(Box::new(trace)),
                _ => {}
            }
        }
        let able: Vec<ThreadId> = (0..threads as u32)
            .map(ThreadId)
            .filter(|&thread| run.alternatives(thread) > 0)
            .collect();
        if able.is_empty() {
            return ended(run.machine(), trace);
        }
        let Some((thread, mut choice)) = pick(&run, &able, &taken) else {
            return Ended::Dull;
        };
        let Pending::Op(op) = run.machine().pending(thread) else {
            return Ended::Badly;
        };
        if matches!(op, Op::Choose { .. }) && thread == ThreadId::MAIN && created == 0 {
            choice = inputs.get(choices).copied().unwrap_or(choice);
            choices += 1;
        }
        let before = op.location().map_or(0, |at| {
            let held = memory.get(&at).copied();
            held.unwrap_or_else(|| run.machine().initial(at))
        });
        let site = run.machine().site(thread);
        let performed = run.step(thread, choice);
        if let (Some(at), Some(wrote)) = (op.location(), performed.wrote) {
            memory.insert(at, wrote);
        }
        if let Op::Create { child } = op {
            created += 1;
            let number = trace.places.iter().flatten();
            let number = number.filter(|place| place.0 == thread).count() as u32;
            trace
                .places
                .resize(trace.places.len().max(child.index() + 1), None);
            trace.places[child.index()] = Some((thread, number));
        }
        trace.add(
            Step {
                thread,
                site,
                op,
                writes: performed.wrote.is_some(),
                before,
                index: taken[thread.index()],
            },
            choice,
        );
        taken[thread.index()] += 1;
    }
}

/// No thread can go on.
fn ended<M: Machine>(machine: &M, trace: Trace) -> Ended {
    let mut waits = false;
    for thread in (0..machine.threads() as u32).map(ThreadId) {
        match machine.pending(thread) {
            Pending::Stopped(Stop::Spinning { since }) => {
                let own = trace.steps.iter().filter(|step| step.thread == thread);
                let mut events = 0;
                let before = own.take_while(|step| {
                    events += step.events();
                    events <= since
                });
                return Ended::Spun(thread, before.count() as u32);
            }
            Pending::Op(_) => waits = true,
            _ => {}
        }
    }
    if waits || machine.leftover().is_some() {
        Ended::Badly
    } else {
        Ended::Well(Box::new(trace))
    }
}

/// The order of the threads in the initial trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// One after the other, in the order of their creation.
    Ascending,
    /// One after the other, the last one first.
    Descending,
    /// In turns.
    Turns,
}

impl Order {
    const ALL: [Order; 3] = [Order::Ascending, Order::Descending, Order::Turns];
}

/// The order of threads when several are enabled: the rank of each thread, and those steps before which a thread
/// lets the others go ahead because it would only spin there.
#[derive(Clone, Debug, Default)]
struct Policy {
    descending: bool,
    /// Goes on with the same thread as long as that can.
    thorough: bool,
    yields: FxHashMap<(ThreadId, u32), u32>,
}

/// A run that takes more steps has lost its way: a thread goes round in a loop that only others can
/// end.
pub const LONGEST: usize = 20_000;
/// How often a run may be tried again because some thread spun.
const ATTEMPTS: usize = 400;
/// How many schedules are tried at random.
const RANDOM: u64 = 2_000;
/// If this many are too long, and all before them as well, the program has no end.
const ENDLESS: u32 = 5;

/// Executions that end well: threads one after the other, in this order or the other, in turns, or
/// whatever chance finds.
pub(super) fn candidates<M: Machine>(
    machine: &mut M,
    inputs: &[u32],
    wanted: Option<Order>,
) -> Result<Vec<Trace>, Impossible> {
    let mut found = Vec::new();
    let (mut endless, mut long) = (true, 0);
    for order in Order::ALL {
        if wanted.is_some_and(|wanted| wanted != order) {
            continue;
        }
        let mut policy = Policy {
            descending: order == Order::Descending,
            thorough: order != Order::Turns,
            ..Policy::default()
        };
        for _ in 0..ATTEMPTS {
            match policy.run(machine, inputs) {
                Ended::Well(trace) => {
                    found.push(*trace);
                    break;
                }
                Ended::Spun(thread, step) => {
                    endless = false;
                    *policy.yields.entry((thread, step)).or_default() += 1;
                }
                Ended::Refused(what) => return Err(Impossible::Refused(what)),
                Ended::Long => break,
                Ended::Badly | Ended::Dull => {
                    endless = false;
                    break;
                }
            }
        }
    }
    let mut random = Random::new(1);
    for _ in 0..RANDOM {
        if !found.is_empty() {
            break;
        }
        let ended = run(machine, inputs, |run, able, _| {
            let thread = able[random.below(able.len() as u64) as usize];
            let choice = random.below(u64::from(run.alternatives(thread))) as u32;
            Some((thread, choice))
        });
        match ended {
            Ended::Well(trace) => found.push(*trace),
            Ended::Refused(what) => return Err(Impossible::Refused(what)),
            Ended::Long => long += 1,
            _ => endless = false,
        }
        if endless && long == ENDLESS {
            return Err(Impossible::Endless);
        }
    }
    Ok(found)
}

impl Policy {
    fn run<M: Machine>(&self, machine: &mut M, inputs: &[u32]) -> Ended {
        let mut last = ThreadId::MAIN;
        run(machine, inputs, |_, able, taken| {
            let key = |&&thread: &&ThreadId| {
                let step = (thread, taken[thread.index()]);
                let yields = self.yields.get(&step).copied().unwrap_or(0);
                let other = self.thorough == (thread != last);
                let rank = if self.descending {
                    u32::MAX - thread.0
                } else {
                    thread.0
                };
                (yields, other, rank)
            };
            let &thread = able.iter().min_by_key(key)?;
            last = thread;
            Some((thread, 0))
        })
    }
}

/// Repeats a run that is known.
pub(super) fn repeat<M: Machine>(
    machine: &mut M,
    inputs: &[u32],
    schedule: &[(ThreadId, u32)],
) -> Option<Trace> {
    let mut steps = schedule.iter().copied();
    match run(machine, inputs, |_, able, _| {
        steps.next().filter(|(thread, _)| able.contains(thread))
    }) {
        Ended::Well(trace) if trace.schedule == schedule => Some(*trace),
        _ => None,
    }
}

/// How many alternatives each choice has that main makes before it creates a thread, if the first
/// ones are `inputs`.
pub(super) fn choices<M: Machine>(machine: &mut M, inputs: &[u32]) -> Result<Vec<u32>, String> {
    let mut found = Vec::new();
    let mut run = Run::new(machine);
    for _ in 0..LONGEST {
        match run.machine().pending(ThreadId::MAIN) {
            Pending::Op(Op::Choose { alternatives }) => {
                let choice = inputs.get(found.len()).copied().unwrap_or(0);
                found.push(alternatives);
                run.step(ThreadId::MAIN, choice);
            }
            Pending::Op(Op::Create { .. }) => return Ok(found),
            Pending::Op(_) if run.alternatives(ThreadId::MAIN) > 0 => {
                run.step(ThreadId::MAIN, 0);
            }
            Pending::Stopped(Stop::Refused) => {
                return Err(run.machine().refusal().unwrap_or_default());
            }
            _ => return Ok(found),
        }
    }
    Ok(found)
}
