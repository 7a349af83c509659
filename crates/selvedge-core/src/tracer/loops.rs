//! What is known of loops that only wait.

use std::ops::ControlFlow;

use super::consistency::Consistency;
use super::{Flow, Search};
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::{EventId, Site, ThreadId};
use crate::machine::{Machine, Pending};
use crate::op::{Op, Value};
use crate::report::{Ending, Observer};
use crate::trust::again::Spins;
use crate::trust::maximal;
use crate::trust::replay::outcome;

/// What is known of such loops.
#[derive(Debug, Default)]
pub(super) struct Loops {
    /// Where their reads stand.
    sites: Vec<Site>,
    /// Those of them that others followed in an attempt.
    pub(super) heads: Vec<Site>,
    /// Some were found since this was last asked, or what they need.
    learned: bool,
    /// Values that threads were seen to spin on, by where they read them. They may go on with them
    /// elsewhere.
    pub(super) spins: Spins,
    threads: Vec<Waiter>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Waiter {
    /// What it is about to do is a read of such a loop.
    repeats: bool,
    /// Where it stands then.
    pub(super) site: Site,
    /// It is spinning, and nobody needs to see that.
    gave_up: bool,
    /// Iterations that do not get it out of a loop. Where they begin grows.
    futile: Vec<Futile>,
    /// What is read in them.
    values: Vec<Value>,
}

#[derive(Clone, Copy, Debug)]
struct Futile {
    /// The first event.
    since: u32,
    /// Where its values begin, one for each event up to the last read.
    values: usize,
}

impl Loops {
    /// Whether loops were found since this was last asked.
    pub(super) fn learned(&mut self) -> bool {
        std::mem::take(&mut self.learned)
    }

    /// Whether there are any.
    pub(super) fn any(&self) -> bool {
        !self.sites.is_empty()
    }

    /// Whether `thread` is about to perform a read of such a loop.
    pub(super) fn repeats(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.repeats)
    }

    /// Whether `thread` is spinning, and nobody needs to see that.
    pub(super) fn gave_up(&self, thread: ThreadId) -> bool {
        let waiter = self.threads.get(thread.index());
        waiter.is_some_and(|waiter| waiter.gave_up)
    }

    /// Looks where `thread` stands now.
    pub(super) fn check<M: Machine>(&mut self, machine: &M, thread: ThreadId) {
        let reads = matches!(
            machine.pending(thread),
            Pending::Op(Op::Load { .. } | Op::Update { .. })
        );
        let site = match reads && !self.sites.is_empty() {
            true => Some(machine.site(thread)),
            false => None,
        };
        let site = site.filter(|site| self.sites.contains(site));
        let waiter = self.waiter(thread);
        waiter.repeats = site.is_some();
        waiter.site = site.unwrap_or_default();
        waiter.gave_up = false;
    }

    /// An event was taken back.
    pub(super) fn popped(&mut self, event: &Event) {
        if let Some(waiter) = self.threads.get_mut(event.id.thread.index()) {
            waiter.forget(event.id.index + 1);
        }
        // What it does may depend on whoever created it.
        if let Op::Create { child } = event.op
            && let Some(waiter) = self.threads.get_mut(child.index())
        {
            waiter.forget(0);
        }
    }

    /// `thread` is about to perform the read of such a loop that stands at `site`.
    pub(super) fn waits_at_loop(&mut self, thread: ThreadId, site: Site) {
        let waiter = self.waiter(thread);
        waiter.repeats = true;
        waiter.site = site;
        waiter.gave_up = false;
    }

    pub(super) fn waiter(&mut self, thread: ThreadId) -> &mut Waiter {
        if self.threads.len() <= thread.index() {
            self.threads.resize(thread.index() + 1, Waiter::default());
        }
        &mut self.threads[thread.index()]
    }

    /// Whether reading `value` with the read `id`, the next event of its thread, leaves it in its
    /// loop, as far as is known.
    pub(super) fn is_futile(&self, graph: &Graph, id: EventId, value: Value) -> bool {
        self.futile_since(graph, id, value).is_some()
    }

    /// The same, and where the iteration begins.
    pub(super) fn futile_since(&self, graph: &Graph, id: EventId, value: Value) -> Option<u32> {
        let waiter = self.threads.get(id.thread.index())?;
        let mut end = waiter.values.len();
        let mut known = waiter.futile.iter().rev();
        let found = known.find(|futile| {
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
        });
        found.map(|futile| futile.since)
    }
}

impl Waiter {
    /// An iteration that begins with event `since` and reads `values` comes to nothing.
    pub(super) fn note_futile(&mut self, since: u32, values: impl Iterator<Item = Value>) {
        self.futile.push(Futile {
            since,
            values: self.values.len(),
        });
        self.values.extend(values);
    }

    /// Forgets iterations that begin with event `since` or later.
    fn forget(&mut self, since: u32) {
        while let Some(futile) = self.futile.pop_if(|futile| futile.since >= since) {
            self.values.truncate(futile.values);
        }
    }
}

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// Whether the iteration of `thread` since its event `since` need not be kept. It must if it
    /// may take part in a race with something that has not happened yet. Updates that leave the
    /// value as it was are not missed: who reads such a one can read what was there before.
    pub(super) fn gives_up(&mut self, thread: ThreadId, since: u32) -> bool {
        let gives_up = self.is_idle(thread, since);
        self.loops.waiter(thread).gave_up = gives_up;
        gives_up
    }

    /// Whether nobody else can have anything to do with that iteration.
    pub(super) fn is_idle(&mut self, thread: ThreadId, since: u32) -> bool {
        let graph = &self.graph;
        let machine = &mut *self.machine;
        machine.quiet(thread)
            && (maximal::waits_for_one(graph, thread, since)
                || maximal::locations(graph, thread, since).all(|at| machine.never_races(at)))
    }

    /// Remembers where the reads of the loop stand that `thread` is in since its event `since`.
    /// Breaks if they were not known; the search has to start over.
    pub(super) fn learn(&mut self, thread: ThreadId, since: u32) -> Flow {
        let trying = self.frames[..self.depth].last();
        if trying.is_some_and(|frame| frame.turn.is_some() && frame.thread == thread) {
            return ControlFlow::Continue(());
        }
        self.machine.reset();
        for (slot, event) in self.graph.events().iter().enumerate() {
            if event.kind == Kind::ReadHalf {
                continue;
            }
            let inside = event.id.thread == thread && event.id.index >= since;
            // An update that writes is looked at once, with its write half.
            if inside && event.op.location().is_some() {
                let site = self.machine.site(thread);
                if !self.loops.sites.contains(&site) {
                    self.loops.sites.push(site);
                    self.loops.learned = true;
                }
            }
            let clock = self.graph.causality(slot as Slot);
            self.machine.resume(event.id.thread, outcome(event), clock);
        }
        match self.loops.learned {
            true => ControlFlow::Break(Ending::Stopped),
            false => ControlFlow::Continue(()),
        }
    }
}
