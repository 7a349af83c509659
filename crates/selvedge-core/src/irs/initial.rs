//! The initial trace: one execution that ends well, and what it takes to have no other.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::constrained::Place;
use super::demands::{Demand, Demands};
use crate::ids::{Location, Site, ThreadId};
use crate::interleave::Run;
use crate::machine::{Machine, Pending, Stop};
use crate::op::{Effect, Op, Value};
use crate::random::Random;

/// One step of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) thread: ThreadId,
    pub(super) site: Site,
    op: Op,
    writes: bool,
    /// What its location held before it.
    before: Value,
    /// Which step of its thread it is.
    index: u32,
}

impl Step {
    /// Whether it matters which of the two, of different threads, comes first.
    fn conflicts_with(&self, other: &Step) -> bool {
        let same = self.op.location().is_some() && self.op.location() == other.op.location();
        same && self.thread != other.thread && (self.writes || other.writes)
    }

    /// Whether this step, taken after `earlier`, could as well have been taken instead of it and it would
    /// have mattered.
    fn races_with(&self, earlier: &Step) -> bool {
        self.conflicts_with(earlier)
            && match self.op {
                Op::Update { function, .. } => function.apply(earlier.before) != Effect::Block,
                _ => true,
            }
    }
}

/// An execution that ended well.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub(super) steps: Vec<Step>,
    /// Who took each step, and which alternative.
    pub(super) schedule: Vec<(ThreadId, u32)>,
    pub(super) places: Vec<Option<Place>>,
    /// Of each step, how many steps of each thread come before it whatever the schedule: program order,
    /// creations and joins.
    natural: Vec<Vec<u32>>,
    /// Of each step, those right before it in that order.
    causes: Vec<Vec<usize>>,
    /// Of each location, the steps that touch it.
    accesses: FxHashMap<Location, Vec<usize>>,
    /// The last step of each thread, and the one that created it.
    last: FxHashMap<ThreadId, usize>,
    creations: FxHashMap<ThreadId, usize>,
    /// Of each step, its number among the counted events of its thread.
    numbers: Vec<u32>,
    /// Steps by thread and number.
    numbered: FxHashMap<(ThreadId, u32), usize>,
}

/// How a run came to an end.
pub(super) enum Ended {
    Well(Box<Trace>),
    /// A thread failed, or nobody could go on.
    Badly,
    /// A thread spun from this step on.
    Spun(ThreadId, u32),
    /// An assumption did not hold.
    Dull,
    /// Something that is not modelled.
    Refused(String),
}

/// Runs `machine` once; `pick` says who goes next among those who can, with which alternative.
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
            return Ended::Dull;
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

/// Nobody can go on.
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

impl Step {
    /// How many events explorers see in it.
    fn events(&self) -> u32 {
        let update = matches!(self.op, Op::Update { .. });
        if update && self.writes { 2 } else { 1 }
    }
}

impl Trace {
    fn add(&mut self, step: Step, choice: u32) {
        let last = |thread: ThreadId| self.last.get(&thread).copied();
        let mut causes = Vec::new();
        match last(step.thread) {
            Some(own) => causes.push(own),
            None => causes.extend(self.creations.get(&step.thread)),
        }
        match step.op {
            Op::Join { child } => causes.extend(last(child)),
            Op::JoinAll => causes.extend(self.last.values()),
            _ => {}
        }
        let mut clock = Vec::new();
        for &cause in &causes {
            merge(&mut clock, &self.natural[cause]);
        }
        count(&mut clock, step.thread, step.index + 1);
        let place = self.steps.len();
        if let Op::Create { child } = step.op {
            self.creations.insert(child, place);
        }
        if let Some(at) = step.op.location() {
            self.accesses.entry(at).or_default().push(place);
        }
        self.last.insert(step.thread, place);
        self.causes.push(causes);
        self.natural.push(clock);
        self.steps.push(step);
        self.schedule.push((step.thread, choice));
    }

    fn knows(&self, clock: &[u32], place: usize) -> bool {
        let step = &self.steps[place];
        clock
            .get(step.thread.index())
            .is_some_and(|&n| n > step.index)
    }

    /// The sites of steps that race with another thread's.
    pub(super) fn dependent_sites(&self, sites: &mut FxHashSet<Site>) {
        for (later, step) in self.steps.iter().enumerate() {
            for earlier in self.racing(later) {
                sites.insert(step.site);
                sites.insert(self.steps[earlier].site);
            }
        }
    }

    /// The earlier steps at the location of the step at `later`.
    fn earlier(&self, later: usize) -> impl Iterator<Item = usize> + '_ {
        let at = self.steps[later].op.location();
        let all = at.and_then(|at| self.accesses.get(&at));
        let all = all.map_or(&[][..], Vec::as_slice).iter().copied();
        all.take_while(move |&earlier| earlier < later)
    }

    /// The earlier steps that the step at `later` races with.
    fn racing(&self, later: usize) -> impl Iterator<Item = usize> + '_ {
        let step = &self.steps[later];
        self.earlier(later).filter(move |&earlier| {
            step.races_with(&self.steps[earlier]) && !self.knows(&self.natural[later], earlier)
        })
    }

    /// Numbers the steps as if this were the only trace.
    pub(super) fn number_dependent(&mut self) {
        let mut sites = FxHashSet::default();
        self.dependent_sites(&mut sites);
        self.number(&sites);
    }

    /// Numbers the steps at `counted` sites.
    pub(super) fn number(&mut self, counted: &FxHashSet<Site>) {
        let mut next: FxHashMap<ThreadId, u32> = FxHashMap::default();
        self.numbers.clear();
        self.numbered.clear();
        for (place, step) in self.steps.iter().enumerate() {
            let next = next.entry(step.thread).or_default();
            self.numbers.push(*next);
            if counted.contains(&step.site) {
                self.numbered.insert((step.thread, *next), place);
                *next += 1;
            }
        }
    }

    /// What it takes to have this trace and no other: of each step, the latest step of each other thread
    /// that it races with, unless the other demands imply that.
    pub(super) fn demands(&self) -> Demands {
        let mut clocks: Vec<Vec<u32>> = Vec::with_capacity(self.steps.len());
        let mut all = Vec::new();
        for later in 0..self.steps.len() {
            let thread = self.steps[later].thread;
            let mut clock = self.natural[later].clone();
            for &cause in &self.causes[later] {
                merge(&mut clock, &clocks[cause]);
            }
            let mut racing: Vec<usize> = self.racing(later).collect();
            racing.reverse();
            for earlier in racing {
                if self.knows(&clock, earlier) {
                    continue;
                }
                merge(&mut clock, &clocks[earlier]);
                all.push(Demand {
                    thread,
                    source: self.steps[earlier].thread,
                    event: self.numbers[later],
                    count: self.numbers[earlier] + 1,
                });
            }
            // Before these it could only have waited: a lock comes after the unlock by itself once it comes
            // after the other lock.
            for earlier in self.earlier(later) {
                if self.steps[later].conflicts_with(&self.steps[earlier]) {
                    merge(&mut clock, &clocks[earlier]);
                }
            }
            clocks.push(clock);
        }
        Demands::new(all)
    }

    /// The place in the trace of a counted event.
    pub(super) fn place(&self, thread: ThreadId, number: u32) -> usize {
        self.numbered[&(thread, number)]
    }

    /// Where the event that waits, and the one it waits for, are in the trace.
    pub(super) fn ends(&self, demand: &Demand) -> (usize, usize) {
        let later = self.place(demand.thread, demand.event);
        (later, self.place(demand.source, demand.count - 1))
    }

    /// The demand that is next weaker in what is waited for, if any is left.
    pub(super) fn lowered(&self, demand: &Demand) -> Option<Demand> {
        let (later, source) = self.ends(demand);
        let mut racing: Vec<usize> = self.racing(later).collect();
        racing.retain(|&at| at < source && self.steps[at].thread == demand.source);
        let &earlier = racing.last()?;
        Some(Demand {
            count: self.numbers[earlier] + 1,
            ..*demand
        })
    }

    /// The demand that is next weaker in who waits: a later event of the same thread.
    pub(super) fn postponed(&self, demand: &Demand) -> Option<Demand> {
        let (later, source) = self.ends(demand);
        let next = (later + 1..self.steps.len()).find(|&next| {
            let step = &self.steps[next];
            step.thread == demand.thread
                && step.races_with(&self.steps[source])
                && !self.knows(&self.natural[next], source)
        })?;
        Some(Demand {
            event: self.numbers[next],
            ..*demand
        })
    }
}

fn count(clock: &mut Vec<u32>, thread: ThreadId, steps: u32) {
    if clock.len() <= thread.index() {
        clock.resize(thread.index() + 1, 0);
    }
    clock[thread.index()] = steps;
}

fn merge(into: &mut Vec<u32>, from: &[u32]) {
    if into.len() < from.len() {
        into.resize(from.len(), 0);
    }
    for (into, &from) in into.iter_mut().zip(from) {
        *into = (*into).max(from);
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

/// Who goes first when several can: the rank of each thread, and those steps before which a thread
/// lets the others go ahead because it would only spin there.
#[derive(Clone, Debug, Default)]
struct Policy {
    descending: bool,
    /// Goes on with the same thread as long as that can.
    thorough: bool,
    yields: FxHashMap<(ThreadId, u32), u32>,
}

/// A run that takes more steps has lost its way: a thread goes round in a loop that only others can end.
const LONGEST: usize = 20_000;
/// How often a run may be tried again because some thread spun.
const ATTEMPTS: usize = 400;
/// How many schedules are tried at random.
const RANDOM: u64 = 2_000;

/// Executions that end well: threads one after the other, in this order or the other, in turns, or
/// whatever chance finds.
pub(super) fn candidates<M: Machine>(
    machine: &mut M,
    inputs: &[u32],
    wanted: Option<Order>,
) -> Result<Vec<Trace>, String> {
    let mut found = Vec::new();
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
                Ended::Spun(thread, step) => *policy.yields.entry((thread, step)).or_default() += 1,
                Ended::Refused(what) => return Err(what),
                Ended::Badly | Ended::Dull => break,
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
            Ended::Refused(what) => return Err(what),
            _ => {}
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
