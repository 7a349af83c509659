//! A program with some of its orders raised, and with fences that it does not have.

use serde::{Deserialize, Serialize};

use crate::ids::{Site, ThreadId};
use crate::machine::{Machine, Outcome, Pending, SpinLoops, Stop};
use crate::op::{Function, MemoryOrder, Op};

/// Something to be changed in the program's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Where.
    pub site: Site,
    /// The present order.
    pub op: Op,
    /// How it is changed.
    pub way: Way,
}

impl Change {
    /// The new order, apart from a new fence before the access.
    pub fn after(&self) -> Op {
        match self.way {
            Way::Order(order) => raised(self.op, order),
            Way::Fence(_) => self.op,
        }
    }
}

/// A way to make an access stronger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Way {
    /// Its own order becomes at least this one.
    Order(MemoryOrder),
    /// A fence with this order comes right before it.
    Fence(MemoryOrder),
}

impl Way {
    /// The order in it.
    pub fn order(self) -> MemoryOrder {
        match self {
            Way::Order(order) | Way::Fence(order) => order,
        }
    }

    /// Every way to raise the order of `op`, weakest first.
    pub(super) fn orders(op: Op) -> Vec<Way> {
        use MemoryOrder::{AcqRel, Acquire, Release, SeqCst};
        let legal: &[MemoryOrder] = match op {
            Op::Load { .. } => &[Acquire, SeqCst],
            Op::Store { .. } => &[Release, SeqCst],
            _ => &[Acquire, Release, AcqRel, SeqCst],
        };
        let ways = legal.iter().filter(|&&order| raised(op, order) != op);
        ways.map(|&order| Way::Order(order)).collect()
    }

    /// Every fence that could come before `op`, weakest first.
    pub(super) fn fences(op: Op) -> Vec<Way> {
        use MemoryOrder::{AcqRel, Acquire, Release, SeqCst};
        match op {
            Op::Fence { .. } => Vec::new(),
            _ => [Acquire, Release, AcqRel, SeqCst].map(Way::Fence).to_vec(),
        }
    }

    /// How much it asks for.
    pub(super) fn strength(self) -> u32 {
        match self.order() {
            MemoryOrder::Plain | MemoryOrder::Relaxed => 0,
            MemoryOrder::Acquire | MemoryOrder::Release => 1,
            MemoryOrder::AcqRel => 2,
            MemoryOrder::SeqCst => 3,
        }
    }
}

/// Whether `op` has an order that the source writes.
pub(super) fn has_order(op: &Op) -> bool {
    match *op {
        Op::Load { order, .. } | Op::Store { order, .. } => order != MemoryOrder::Plain,
        Op::Update { function, .. } => matches!(function, Function::Memory { .. }),
        Op::Fence { .. } => true,
        Op::Create { .. } | Op::Join { .. } | Op::JoinAll | Op::Choose { .. } => false,
    }
}

/// The weakest order that is as strong as both.
fn join(one: MemoryOrder, other: MemoryOrder) -> MemoryOrder {
    use MemoryOrder::{AcqRel, Plain, Relaxed, SeqCst};
    match (one, other) {
        (Plain, _) => Plain,
        (SeqCst, _) | (_, SeqCst) => SeqCst,
        (Relaxed, order) | (order, Relaxed | Plain) => order,
        (one, other) if one == other => one,
        _ => AcqRel,
    }
}

/// The part of an order that a read can have.
fn of_read(order: MemoryOrder) -> MemoryOrder {
    match order {
        MemoryOrder::Release => MemoryOrder::Relaxed,
        MemoryOrder::AcqRel => MemoryOrder::Acquire,
        order => order,
    }
}

/// `op` with its order raised to at least `to`; a compare-exchange also where it fails.
fn raised(mut op: Op, to: MemoryOrder) -> Op {
    match &mut op {
        Op::Load { order, .. } | Op::Store { order, .. } | Op::Fence { order } => {
            *order = join(*order, to);
        }
        Op::Update { order, failure, .. } => {
            *order = join(*order, to);
            *failure = join(*failure, of_read(to));
        }
        Op::Create { .. } | Op::Join { .. } | Op::JoinAll | Op::Choose { .. } => {}
    }
    op
}

/// A machine whose program is changed.
///
/// A new fence is an event like any other to the explorer, but not to the program: what the
/// two say of numbers of events is translated.
pub(super) struct Changed<'a, M> {
    machine: &'a mut M,
    changes: &'a [Change],
    threads: Vec<Progress>,
}

/// How far a thread has come.
#[derive(Clone, Debug, Default)]
struct Progress {
    /// Its events, without new fences.
    events: u32,
    /// Before which of them there is a new fence.
    fences: Vec<u32>,
    /// Whether the pending operation has had its fence.
    fenced: bool,
}

impl Progress {
    /// How many events there are to the explorer before this one of the program.
    fn to_explorer(&self, event: u32) -> u32 {
        let before = self.fences.iter().filter(|&&fence| fence < event);
        event + before.count() as u32
    }

    /// How many of the first `events` to the explorer are the program's own.
    fn to_program(&self, events: u32) -> u32 {
        let fences = (0..).zip(&self.fences);
        let before = fences.filter(|&(n, &fence)| fence + n < events);
        events - before.count() as u32
    }
}

impl<'a, M: Machine> Changed<'a, M> {
    pub(super) fn new(machine: &'a mut M, changes: &'a [Change]) -> Changed<'a, M> {
        Changed {
            machine,
            changes,
            threads: Vec::new(),
        }
    }

    /// The next operation of `thread` in the program as it is written.
    pub(super) fn original(&self, thread: ThreadId) -> Pending {
        self.machine.pending(thread)
    }

    /// Whether `thread` is about to perform a fence that the program does not have.
    pub(super) fn has_new_fence(&self, thread: ThreadId) -> bool {
        match self.machine.pending(thread) {
            Pending::Op(op) => self.next(thread, op).1,
            _ => false,
        }
    }

    /// The operation that `thread` is about to perform instead of `op`, and whether it is a new
    /// fence.
    fn next(&self, thread: ThreadId, op: Op) -> (Op, bool) {
        if self.changes.is_empty() || !has_order(&op) {
            return (op, false);
        }
        let site = self.machine.site(thread);
        let fenced = self.threads.get(thread.index()).is_some_and(|t| t.fenced);
        let here = || self.changes.iter().filter(|change| change.site == site);
        let fence = here().find_map(|change| match change.way {
            Way::Fence(order) if !fenced => Some(Op::Fence { order }),
            _ => None,
        });
        if let Some(fence) = fence {
            return (fence, true);
        }
        let raise = |op, change: &Change| Change { op, ..*change }.after();
        (here().fold(op, raise), false)
    }

    fn progress(&mut self, thread: ThreadId) -> &mut Progress {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Progress::default());
        }
        &mut self.threads[thread.index()]
    }
}

impl<M: Machine> Machine for Changed<'_, M> {
    fn reset(&mut self) {
        self.threads.clear();
        self.machine.reset();
    }

    fn pending(&self, thread: ThreadId) -> Pending {
        match self.machine.pending(thread) {
            Pending::Op(op) => Pending::Op(self.next(thread, op).0),
            Pending::Stopped(Stop::Spinning { since }) => {
                let progress = self.threads.get(thread.index());
                let since = progress.map_or(since, |progress| progress.to_explorer(since));
                Pending::Stopped(Stop::Spinning { since })
            }
            pending => pending,
        }
    }

    fn resume(&mut self, thread: ThreadId, outcome: Outcome, clock: &[u32]) {
        let Pending::Op(op) = self.machine.pending(thread) else {
            return;
        };
        let (op, new_fence) = self.next(thread, op);
        let progress = self.progress(thread);
        if new_fence {
            progress.fenced = true;
            progress.fences.push(progress.events);
            return;
        }
        progress.fenced = false;
        let writes = matches!(op, Op::Update { .. }) && outcome.wrote.is_some();
        progress.events += 1 + u32::from(writes);
        let known = |thread: usize, events: u32| match self.threads.get(thread) {
            Some(progress) => progress.to_program(events),
            None => events,
        };
        let clock = clock.iter().enumerate();
        let clock: Vec<u32> = clock.map(|(n, &events)| known(n, events)).collect();
        self.machine.resume(thread, outcome, &clock);
    }

    crate::forward_machine!(machine: around, initial, pointless);
}

impl<M: SpinLoops> SpinLoops for Changed<'_, M> {
    crate::forward_machine!(machine: quiet, never_races, misjudged);
}
