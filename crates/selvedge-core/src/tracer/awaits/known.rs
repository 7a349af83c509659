//! The knowledge of the search about await loops.

use std::ops::ControlFlow;

use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::{EventId, Site, ThreadId};
use crate::machine::{Pending, SpinLoops};
use crate::op::{Op, Value};
use crate::report::{Ending, Observer};
use crate::rewind::outcome;
use crate::spins::{Spins, may_drop_iteration};
use crate::tracer::consistency::Consistency;
use crate::tracer::{Flow, Search};

#[derive(Debug, Default)]
pub(in crate::tracer) struct Awaits {
    /// The program points of reads in await loops.
    sites: Vec<Site>,
    /// New sites were discovered since the last call of [`learned`](Awaits::learned).
    learned: bool,
    /// Values on which threads were seen to stay in a loop, by program point. Another iteration may
    /// still leave the loop with such a value.
    pub(super) spins: Spins,
    threads: Vec<Waiter>,
    /// The frames of the first reads of awaits, by number, growing.
    pub(in crate::tracer) frames: Vec<u32>,
}

/// The knowledge about one thread.
#[derive(Clone, Debug, Default)]
struct Waiter {
    /// Its pending operation is a read of an await loop.
    at_await: bool,
    /// It has just completed an iteration that stays in its loop and may be dropped.
    stays: bool,
    /// Iterations that stay in a loop, by growing first event.
    futile: Vec<Futile>,
    /// The values that they read.
    values: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
struct Futile {
    /// The first event of the iteration.
    since: u32,
    /// The index of its first value, one for each event up to the last read.
    values: usize,
}

impl Awaits {
    /// Whether new loops were discovered since the last call.
    pub(in crate::tracer) fn learned(&mut self) -> bool {
        std::mem::take(&mut self.learned)
    }

    /// Whether `thread` is about to perform a read of an await loop.
    pub(in crate::tracer) fn at_await(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.at_await)
    }

    /// Whether `thread` has just completed an iteration that stays in its loop and may be dropped.
    pub(in crate::tracer) fn stays(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.stays)
    }

    /// Updates the state of `thread` after the machine has run it.
    pub(in crate::tracer) fn check<M: SpinLoops>(&mut self, machine: &M, thread: ThreadId) {
        let reads = matches!(
            machine.pending(thread),
            Pending::Op(Op::Load { .. } | Op::Update { .. })
        );
        let at_await =
            reads && !self.sites.is_empty() && self.sites.contains(&machine.site(thread));
        self.set(thread, at_await);
    }

    /// The pending operation of `thread` is a read of an await loop, or is not.
    pub(super) fn set(&mut self, thread: ThreadId, at_await: bool) {
        let waiter = self.waiter(thread);
        waiter.at_await = at_await;
        waiter.stays = false;
    }

    /// Forgets what depends on `event`, which is removed from the graph.
    pub(in crate::tracer) fn removed(&mut self, event: &Event) {
        if let Some(waiter) = self.threads.get_mut(event.id.thread.index()) {
            waiter.forget(event.id.index + 1);
        }
        if let Op::Create { child } = event.op
            && let Some(waiter) = self.threads.get_mut(child.index())
        {
            waiter.forget(0);
        }
    }

    fn waiter(&mut self, thread: ThreadId) -> &mut Waiter {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Waiter::default());
        }
        &mut self.threads[thread.index()]
    }

    /// Records that an iteration of `thread` which begins with event `since` and reads `values`
    /// stays in its loop.
    pub(super) fn add_futile(
        &mut self,
        thread: ThreadId,
        since: u32,
        values: impl Iterator<Item = Value>,
    ) {
        let waiter = self.waiter(thread);
        waiter.futile.push(Futile {
            since,
            values: waiter.values.len(),
        });
        waiter.values.extend(values);
    }

    /// Whether an iteration is known to stay in its loop if the read `id`, the next event of its
    /// thread, returns `value`.
    pub(super) fn is_futile(&self, graph: &Graph, id: EventId, value: Value) -> bool {
        let Some(waiter) = self.threads.get(id.thread.index()) else {
            return false;
        };
        let mut end = waiter.values.len();
        let mut known = waiter.futile.iter().rev();
        known.any(|futile| {
            let values = &waiter.values[futile.values..end];
            end = futile.values;
            let Some((last, earlier)) = values.split_last() else {
                return false;
            };
            let since = futile.since as usize;
            *last == value
                && since + earlier.len() == id.index as usize
                && graph.thread(id.thread)[since..]
                    .iter()
                    .zip(earlier)
                    .all(|(&slot, &value)| graph.event(slot).read == value)
        })
    }
}

impl Waiter {
    /// Forgets iterations that begin with event `since` or later.
    fn forget(&mut self, since: u32) {
        while let Some(futile) = self.futile.pop_if(|futile| futile.since >= since) {
            self.values.truncate(futile.values);
        }
    }
}

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Decides whether the iteration that `thread` has just completed, from its event `since` on,
    /// may be dropped. It is kept if it could take part in a race with a later operation. Updates in
    /// it that wrote the value they read are not needed: their readers can read the write before.
    ///
    /// Breaks if the reads of the iteration were not known as reads of an await loop; the search
    /// then starts over.
    pub(in crate::tracer) fn completed_iteration(&mut self, thread: ThreadId, since: u32) -> Flow {
        let graph = &self.graph;
        let machine = &mut self.machine;
        let stays = may_drop_iteration(machine, graph, thread, since);
        self.awaits.waiter(thread).stays = stays;
        let last = self.frames[..self.depth].last();
        let is_known = last.is_some_and(|frame| frame.awaits.is_some() && frame.thread == thread);
        match stays && !is_known {
            true => self.learn(thread, since),
            false => ControlFlow::Continue(()),
        }
    }

    /// Records the program points of the reads of `thread` from its event `since` on.
    fn learn(&mut self, thread: ThreadId, since: u32) -> Flow {
        self.machine.reset();
        for (slot, event) in self.graph.events().iter().enumerate() {
            if event.kind == Kind::ReadHalf {
                continue;
            }
            let inside = event.id.thread == thread && event.id.index >= since;
            if inside && event.op.location().is_some() {
                let site = self.machine.site(thread);
                if !self.awaits.sites.contains(&site) {
                    self.awaits.sites.push(site);
                    self.awaits.learned = true;
                }
            }
            let clock = self.graph.causality(slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        match self.awaits.learned {
            true => ControlFlow::Break(Ending::Stopped),
            false => ControlFlow::Continue(()),
        }
    }
}
