//! A program with its enforced waits built in, as a machine.
//!
//! Each source event of a wait has a flag of its own, a location that the program does not know of.
//! It is set right after the event, or when the thread ends without it, and awaited right before
//! the event that waits. Explorers see ordinary stores and blocking reads, so each of them can
//! explore a constrained program. A flag is written once, and the await can read nothing else, so
//! the flags add no executions.

use std::mem::take;

use super::doing::Doing;
use super::histories::{Happening, Histories, NodeId, ROOT};
use super::log::Log;
use super::plan::{Flags, Plan, at};
use super::reversal::{FLAG, Pair};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::{Machine, Outcome, Pending, Portable, SpinLoops, Stop};
use crate::objects::ObjectFunction;
use crate::op::{Function, MemoryOrder, Op, Value};

/// The value of a flag that is set: generation one of a barrier.
const SET: Value = 1 << 64;

/// The state of a thread in the present execution.
#[derive(Clone, Debug, Default)]
struct Local {
    /// Counted events performed.
    counted: u32,
    /// Flags to be set before anything else, last one first.
    due: Vec<u32>,
    /// Flags to be awaited before the pending operation, last one first.
    awaits: Vec<u32>,
    /// After each event, as explorers count them, how many are the program's own.
    own: Vec<u32>,
    /// About each of the program's own events.
    numbers: Vec<Number>,
    /// The sequence of its events so far.
    history: NodeId,
    /// Threads created.
    children: u32,
    /// Choices made before the first thread was created.
    choices: usize,
    ended: bool,
}

/// Where an event is in its thread.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// How many counted events come before it.
    counted: u32,
    /// Where explorers count it.
    place: u32,
    /// The sequence of the events before it.
    history: NodeId,
}

impl Local {
    /// The thread begins, or has not begun yet.
    fn begin(&mut self) {
        self.counted = 0;
        self.due.clear();
        self.awaits.clear();
        self.own.clear();
        self.numbers.clear();
        self.history = ROOT;
        self.children = 0;
        self.choices = 0;
        self.ended = false;
    }
}

/// The data that a step is going to change, as it was before.
struct Before {
    thread: ThreadId,
    /// The thread as it was, but for `own` and `numbers`, of which only the lengths are kept.
    local: Local,
    own: usize,
    numbers: usize,
    pair: (Option<u32>, Option<u32>),
    /// Whether the program takes a step.
    inner: bool,
    /// The thread that begins with the step.
    child: Option<ThreadId>,
}

/// A machine that keeps to a plan.
pub(super) struct Constrained<'a, M> {
    inner: &'a mut M,
    plan: Plan<'a>,
    flags: Flags,
    threads: Vec<Local>,
    clock: Vec<u32>,
    pub(super) log: Log,
    /// The histories of all threads. Threads keep places in them, so it lives as long as the machine.
    pub(super) histories: Vec<Histories>,
    /// Where the reversed events are in this execution.
    pair: &'a Pair,
    /// The steps since the reset.
    steps: Vec<Before>,
}

impl<'a, M: Machine> Constrained<'a, M> {
    pub(super) fn new(inner: &'a mut M, plan: Plan<'a>, pair: &'a Pair) -> Self {
        let flags = Flags::new(&plan);
        Constrained {
            inner,
            plan,
            flags,
            threads: Vec::new(),
            clock: Vec::new(),
            log: Log::default(),
            histories: Vec::new(),
            pair,
            steps: Vec::new(),
        }
    }

    /// Notes what a step of `thread` is going to change.
    fn note(&mut self, thread: ThreadId) {
        let pending = self.inner.pending(thread);
        let local = at(&mut self.threads, thread);
        let inner = local.due.is_empty() && local.awaits.is_empty();
        self.steps.push(Before {
            thread,
            own: local.own.len(),
            numbers: local.numbers.len(),
            local: Local {
                due: local.due.clone(),
                awaits: local.awaits.clone(),
                own: Vec::new(),
                numbers: Vec::new(),
                ..*local
            },
            pair: (self.pair.first.get(), self.pair.later.get()),
            inner,
            child: match pending {
                Pending::Op(Op::Create { child }) if inner => Some(child),
                _ => None,
            },
        });
    }

    pub(super) fn inner(&self) -> &M {
        self.inner
    }

    /// How many locations come before the program's own.
    pub(super) fn flags(&self) -> u32 {
        self.flags.count
    }

    fn shift(&self, op: Op) -> Op {
        let by = self.flags.count;
        moved(op, |location| Location(location.0 + by))
    }

    /// Notes what `thread` waits for before its next operation, or sets what it will never do.
    fn arrive(&mut self, thread: ThreadId) {
        let pending = self.inner.pending(thread);
        let local = at(&mut self.threads, thread);
        match pending {
            Pending::Op(_) => {
                let number = local.counted;
                if let Some(awaited) = self.flags.awaited.get(thread.index())
                    && awaited.last().is_some_and(|&(last, _)| last >= number)
                    && self.plan.counted.contains(&self.inner.site(thread))
                {
                    let here = awaited.iter().filter(|&&(event, _)| event == number);
                    local.awaits.extend(here.rev().map(|&(_, flag)| flag));
                }
            }
            Pending::Stopped(Stop::Finished | Stop::Returned) if !local.ended => {
                local.ended = true;
                at(&mut self.histories, thread).step(local.history, Happening::End);
                let mut due = std::mem::take(&mut local.due);
                self.never(thread, &mut due);
                self.threads[thread.index()].due = due;
            }
            Pending::Stopped(Stop::Spinning { since }) => {
                let number = local.numbers.get(since as usize);
                if let Some(number) = number {
                    at(&mut self.histories, thread).repeat(local.history, number.history);
                }
                let first = number.map_or(local.counted, |number| number.counted);
                if first < local.counted {
                    let spins = at(&mut self.log.spins, thread);
                    *spins = Some(spins.map_or(first, |least| least.min(first)));
                }
            }
            _ => {}
        }
    }

    /// The flags that `thread`, which does nothing any more, leaves unset, and those of the threads
    /// that it would have to create.
    fn never(&self, thread: ThreadId, due: &mut Vec<u32>) {
        let (counted, children) = match self.threads.get(thread.index()) {
            Some(local) => (local.counted, local.children),
            None => (0, 0),
        };
        if let Some(set) = self.flags.set.get(thread.index()) {
            let missing = set.iter().filter(|&&(count, _)| count > counted);
            due.extend(missing.map(|&(_, flag)| flag));
        }
        for (index, place) in self.plan.places.iter().enumerate() {
            if let &Some((parent, child)) = place
                && parent == thread
                && child >= children
                && index != thread.index()
            {
                self.never(ThreadId(index as u32), due);
            }
        }
    }

    /// An event of the program was performed.
    fn performed(&mut self, thread: ThreadId, op: Op, site: Site) {
        let doing = Doing::from(op);
        let known = self.log.sites.entry(site).or_insert(doing);
        *known = known.or(doing);
        if let Some(at) = op.location() {
            let writes = !matches!(op, Op::Load { .. });
            self.log.touch(thread, at, writes, site);
        }
        if let Op::Create { child } = op {
            let number = self.threads[thread.index()].children;
            self.threads[thread.index()].children += 1;
            if !self.log.threads.iter().any(|&(known, _)| known == child) {
                self.log.threads.push((child, (thread, number)));
            }
        }
        if let Some(event) = Happening::of(op, site) {
            let history = &mut self.threads[thread.index()].history;
            *history = at(&mut self.histories, thread).step(*history, event);
        }
        if !self.plan.counted.contains(&site) {
            return;
        }
        let local = &mut self.threads[thread.index()];
        let number = local.counted;
        local.counted += 1;
        if let Some(set) = self.flags.set.get(thread.index())
            && let Ok(found) = set.binary_search_by_key(&(number + 1), |&(count, _)| count)
        {
            local.due.push(set[found].1);
        }
        if let Some(reversed) = self.plan.reversed {
            let place = Some(local.own.len() as u32 - 1);
            if reversed.first == (thread, number) {
                local.due.push(FLAG.0);
                self.pair.first.set(place);
            }
            if reversed.later == (thread, number) {
                self.pair.later.set(place);
            }
        }
        let events = at(&mut self.log.events, thread);
        match events.get_mut(number as usize) {
            None => events.push(Some(site)),
            Some(known) if *known != Some(site) => *known = None,
            Some(_) => {}
        }
    }

    /// Counts of the program's own events, from counts of all events.
    fn translate(&mut self, clock: &[u32]) {
        self.clock.clear();
        let threads = &self.threads;
        self.clock
            .extend(clock.iter().enumerate().map(|(thread, &count)| {
                let own = match threads.get(thread) {
                    Some(local) => &local.own,
                    None => return count,
                };
                let Some(last) = (count as usize).checked_sub(1) else {
                    return 0;
                };
                match own.get(last) {
                    Some(&own) => own,
                    // A clock may count one more than there were, for the end of a thread.
                    None => own.last().copied().unwrap_or(0) + count - own.len() as u32,
                }
            }));
    }
}

/// `op` with its location renamed.
pub(super) fn moved(mut op: Op, rename: impl Fn(Location) -> Location) -> Op {
    if let Op::Load { at, .. } | Op::Store { at, .. } | Op::Update { at, .. } = &mut op {
        *at = rename(*at);
    }
    op
}

impl<M: Machine> Machine for Constrained<'_, M> {
    fn reset(&mut self) {
        self.inner.reset();
        self.pair.forget();
        self.steps.clear();
        self.threads.iter_mut().for_each(Local::begin);
        self.arrive(ThreadId::MAIN);
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        let pending = self.inner.pending(thread);
        let Some(local) = self.threads.get(thread.index()) else {
            return pending;
        };
        if let Some(&flag) = local.due.last() {
            return Pending::Op(Op::Store {
                at: Location(flag),
                value: SET,
                order: MemoryOrder::Release,
            });
        }
        match pending {
            Pending::Op(_) if !local.awaits.is_empty() => Pending::Op(Op::Update {
                at: Location(local.awaits[local.awaits.len() - 1]),
                function: Function::Object(ObjectFunction::BarrierAwait { generation: 0 }),
                order: MemoryOrder::Acquire,
                failure: MemoryOrder::Acquire,
            }),
            Pending::Op(Op::Choose { .. }) if local.choices < self.inputs_of(thread) => {
                Pending::Op(Op::Choose { alternatives: 1 })
            }
            Pending::Op(op) => Pending::Op(self.shift(op)),
            Pending::Stopped(Stop::Spinning { since }) => {
                let number = local.numbers.get(since as usize);
                let since = number.map_or(local.own.len() as u32, |number| number.place);
                Pending::Stopped(Stop::Spinning { since })
            }
            other => other,
        }
    }

    fn initial(&self, location: Location) -> Value {
        match location.0.checked_sub(self.flags.count) {
            Some(own) => self.inner.initial(Location(own)),
            None => 0,
        }
    }

    fn resume(&mut self, thread: ThreadId, mut outcome: Outcome, clock: &[u32]) {
        self.note(thread);
        let inputs = self.inputs_of(thread);
        let local = at(&mut self.threads, thread);
        let own = local.own.last().copied().unwrap_or(0);
        if local.due.pop().is_some() || local.awaits.pop().is_some() {
            local.own.push(own);
            return;
        }
        let Pending::Op(op) = self.inner.pending(thread) else {
            panic!("{thread} has no pending operation");
        };
        if let Op::Choose { .. } = op
            && local.choices < inputs
        {
            outcome.read = self.plan.inputs[local.choices].into();
            local.choices += 1;
        }
        let events = if outcome.wrote.is_some() { 2 } else { 1 };
        for event in 1..=events {
            local.numbers.push(Number {
                counted: local.counted,
                place: local.own.len() as u32,
                history: local.history,
            });
            local.own.push(own + event);
        }
        let site = self.inner.site(thread);
        self.translate(clock);
        self.inner.resume(thread, outcome, &self.clock);
        self.performed(thread, op, site);
        self.arrive(thread);
        if let Op::Create { child } = op {
            at(&mut self.threads, child);
            self.arrive(child);
        }
    }

    fn undo(&mut self, steps: usize) -> bool {
        let kept = self.steps.len() - steps;
        let inner = self.steps[kept..].iter().filter(|step| step.inner).count();
        if inner > 0 && !self.inner.undo(inner) {
            return false;
        }
        for before in self.steps.drain(kept..).rev() {
            let local = &mut self.threads[before.thread.index()];
            let (mut own, mut numbers) = (take(&mut local.own), take(&mut local.numbers));
            own.truncate(before.own);
            numbers.truncate(before.numbers);
            *local = before.local;
            (local.own, local.numbers) = (own, numbers);
            self.pair.first.set(before.pair.0);
            self.pair.later.set(before.pair.1);
            if let Some(child) = before.child {
                self.threads[child.index()].begin();
            }
        }
        true
    }

    fn pointless(&self, thread: ThreadId) -> bool {
        let local = self.threads.get(thread.index());
        let awaits = local.and_then(|local| local.awaits.last());
        self.plan.reversed.is_some() && awaits == Some(&FLAG.0)
    }

    crate::forward_machine!(inner: around);
}

impl<M: SpinLoops> SpinLoops for Constrained<'_, M> {
    fn never_races(&mut self, location: Location) -> bool {
        let own = location.0.checked_sub(self.flags.count);
        own.is_some_and(|own| self.inner.never_races(Location(own)))
    }

    crate::forward_machine!(inner: quiet, misjudged);
}

impl<M: Portable> Portable for Constrained<'_, M> {
    crate::forward_machine!(inner: portable);
}

impl<M: Machine> Constrained<'_, M> {
    /// How many choices of `thread` are inputs.
    fn inputs_of(&self, thread: ThreadId) -> usize {
        if thread == ThreadId::MAIN {
            self.plan.inputs.len()
        } else {
            0
        }
    }
}
