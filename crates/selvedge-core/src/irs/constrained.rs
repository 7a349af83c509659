//! A program with waits built in: what enforcement makes of it, as one more machine.
//!
//! Each source event of a wait has a flag of its own, a location that the program does not know of. It is set
//! right after the event, or when the thread ends without it, and awaited right before the event that waits. Explorers see
//! ordinary stores and blocking reads, so each of them can explore a constrained program. A flag is written once,
//! and the await can read nothing else, so the flags add no executions.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use super::demands::{Demand, Demands};
use super::doing::Doing;
use super::reversal::{FLAG, Pair};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::{Machine, Outcome, Pending, Stop};
use crate::objects::ObjectFunction;
use crate::op::{Function, MemoryOrder, Op, Value};

/// What a flag holds once it is set: generation one of a barrier.
const SET: Value = 1 << 64;

/// A thread's place in the spawn tree: its parent, and which of its children it is.
pub type Place = (ThreadId, u32);

/// What is built into a program.
pub(super) struct Plan<'a> {
    /// The values of the choices that main makes before it creates a thread.
    pub(super) inputs: &'a [u32],
    /// The sites whose events are counted.
    pub(super) counted: &'a FxHashSet<Site>,
    /// The places of the threads that waits mention.
    pub(super) places: &'a [Option<Place>],
    /// What is waited for.
    pub(super) demands: &'a Demands,
    /// The other way round: this event comes before that one, or the execution is of no interest.
    pub(super) reversed: Option<Reversed>,
}

/// An order that is the contrary of a demand: the event that would have waited comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reversed {
    /// Thread and number of the event that has to come first.
    pub(super) first: (ThreadId, u32),
    /// Thread and number of the event that has to come later, if at all.
    pub(super) later: (ThreadId, u32),
}

impl Reversed {
    /// The contrary of `demand`.
    pub(super) fn of(demand: &Demand) -> Reversed {
        Reversed {
            first: (demand.thread, demand.event),
            later: (demand.source, demand.count - 1),
        }
    }
}

/// What was met on the way.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Log {
    /// What was done at each site.
    pub(super) sites: FxHashMap<Site, Doing>,
    /// The sites of operations on what another thread touches too, if one of them writes it.
    #[serde(default)]
    pub(super) shared: FxHashSet<Site>,
    /// Who touched what. Both parts of a conflict happen in one execution, so this need not be kept.
    #[serde(skip)]
    touched: FxHashMap<Location, Touched>,
    /// Of each thread, for each counted event, its site, `None` if there were several.
    pub(super) events: Vec<Vec<Option<Site>>>,
    /// The threads met, in that order, with their places.
    pub(super) threads: Vec<(ThreadId, Place)>,
    /// The least number of a counted event with which an iteration began that only waited, of each
    /// thread. Iterations without counted events do not matter.
    pub(super) spins: Vec<Option<u32>>,
}

/// Who touched a location, in any execution.
#[derive(Clone, Debug)]
struct Touched {
    first: ThreadId,
    several: bool,
    written: bool,
    sites: Vec<Site>,
}

impl Log {
    /// Notes an operation on `at`.
    fn touch(&mut self, thread: ThreadId, at: Location, writes: bool, site: Site) {
        let touched = self.touched.entry(at).or_insert(Touched {
            first: thread,
            several: false,
            written: false,
            sites: Vec::new(),
        });
        touched.several |= touched.first != thread;
        touched.written |= writes;
        if !touched.sites.contains(&site) {
            touched.sites.push(site);
        }
        if touched.several && touched.written {
            self.shared.extend(touched.sites.drain(..));
        }
    }
}

/// The flags and who sets and awaits them.
struct Flags {
    /// By thread: number of events after which it sets a flag, ascending.
    set: Vec<Vec<(u32, u32)>>,
    /// By thread: event and the flag it awaits, ascending.
    awaited: Vec<Vec<(u32, u32)>>,
    count: u32,
}

/// What is known of a thread in the present execution.
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
    /// Before each of the program's own events, how many counted ones there were, and where
    /// explorers count it.
    numbers: Vec<(u32, u32)>,
    /// Threads created.
    children: u32,
    /// Choices made before the first thread was created.
    choices: usize,
    ended: bool,
}

/// A machine that keeps to a plan.
pub(super) struct Constrained<'a, M> {
    inner: &'a mut M,
    plan: Plan<'a>,
    flags: Flags,
    threads: Vec<Local>,
    clock: Vec<u32>,
    pub(super) log: Log,
    /// Where the reversed events are in this execution.
    pair: &'a Pair,
}

impl Flags {
    fn new(plan: &Plan<'_>) -> Flags {
        let mut flags = Flags {
            set: Vec::new(),
            awaited: Vec::new(),
            count: 0,
        };
        let mut known: FxHashMap<(ThreadId, u32), u32> = FxHashMap::default();
        if let Some(Reversed { later, .. }) = plan.reversed {
            // Nobody sets this one for a thread that has ended.
            flags.add(later, FLAG.0);
            flags.count = 1;
        }
        for demand in plan.demands.iter() {
            let next = flags.count;
            let flag = *known.entry((demand.source, demand.count)).or_insert(next);
            if flag == next {
                flags.count += 1;
                let setters = at(&mut flags.set, demand.source);
                setters.push((demand.count, flag));
            }
            flags.add((demand.thread, demand.event), flag);
        }
        for list in flags.set.iter_mut().chain(&mut flags.awaited) {
            list.sort_unstable();
        }
        flags
    }

    fn add(&mut self, (thread, event): (ThreadId, u32), flag: u32) {
        at(&mut self.awaited, thread).push((event, flag));
    }
}

/// The entry of `thread`, which there is room for afterwards.
fn at<T: Default>(table: &mut Vec<T>, thread: ThreadId) -> &mut T {
    if table.len() <= thread.index() {
        table.resize_with(thread.index() + 1, T::default);
    }
    &mut table[thread.index()]
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
            pair,
        }
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
            Pending::Stopped(Stop::Finished) if !local.ended => {
                local.ended = true;
                let mut due = std::mem::take(&mut local.due);
                self.never(thread, &mut due);
                self.threads[thread.index()].due = due;
            }
            Pending::Stopped(Stop::Spinning { since }) => {
                let number = local.numbers.get(since as usize);
                let first = number.map_or(local.counted, |&(counted, _)| counted);
                if first < local.counted {
                    let spins = at(&mut self.log.spins, thread);
                    *spins = Some(spins.map_or(first, |least| least.min(first)));
                }
            }
            _ => {}
        }
    }

    /// The flags that `thread`, which does nothing any more, leaves unset, and those of the threads that it would have
    /// to create.
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
        for local in &mut self.threads {
            local.counted = 0;
            local.due.clear();
            local.awaits.clear();
            local.own.clear();
            local.numbers.clear();
            local.children = 0;
            local.choices = 0;
            local.ended = false;
        }
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
                let place = local.numbers.get(since as usize);
                let since = place.map_or(local.own.len() as u32, |&(_, place)| place);
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
            let place = local.own.len() as u32;
            local.numbers.push((local.counted, place));
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

    fn never_races(&mut self, location: Location) -> bool {
        let own = location.0.checked_sub(self.flags.count);
        own.is_some_and(|own| self.inner.never_races(Location(own)))
    }

    fn pointless(&self, thread: ThreadId) -> bool {
        let local = self.threads.get(thread.index());
        let awaits = local.and_then(|local| local.awaits.last());
        self.plan.reversed.is_some() && awaits == Some(&FLAG.0)
    }

    crate::forward_machine!(inner: around);
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
