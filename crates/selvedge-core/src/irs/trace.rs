//! A trace: the steps of one execution, and what it takes to have no other.

use rustc_hash::{FxHashMap, FxHashSet};

use super::demands::{Demand, Demands};
use super::log::EventPlace;
use crate::ids::{Location, Site, ThreadId};
use crate::op::{Effect, Op, Value};

/// One step of a trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) thread: ThreadId,
    pub(super) site: Site,
    pub(super) op: Op,
    pub(super) writes: bool,
    /// The value of its location before it.
    pub(super) before: Value,
    /// Its number among the steps of its thread.
    pub(super) index: u32,
}

impl Step {
    /// Whether it matters which of the two, of different threads, comes first.
    fn conflicts_with(&self, other: &Step) -> bool {
        let same = self.op.location().is_some() && self.op.location() == other.op.location();
        same && self.thread != other.thread && (self.writes || other.writes)
    }

    /// Whether this step, taken after `earlier`, could as well have been taken instead of it and it
    /// would have mattered.
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
    /// The thread of each step, and its alternative.
    pub(super) schedule: Vec<(ThreadId, u32)>,
    pub(super) places: Vec<Option<EventPlace>>,
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

impl Step {
    /// How many events explorers see in it.
    pub(super) fn events(&self) -> u32 {
        let update = matches!(self.op, Op::Update { .. });
        if update && self.writes { 2 } else { 1 }
    }
}

impl Trace {
    pub(super) fn add(&mut self, step: Step, choice: u32) {
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

    /// The demands that admit this trace and no other: of each step, the latest step of each other
    /// thread that it races with, unless the other demands imply that.
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
            // Before these it could only have waited: a lock comes after the unlock by itself once
            // it comes after the other lock.
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

    /// The next weaker demand for the waiting thread: a later event of the same thread.
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
    crate::graph::join(into, from);
}
