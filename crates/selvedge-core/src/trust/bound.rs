//! Preemption bound: the least number of preemptions over all linearisations of a graph (Marmanis et
//! al., "Reconciling Preemption Bounding with DPOR", §3.1 and §5).
//!
//! Leaving a thread is a preemption if it has a further event in the graph and could go on: its next event
//! is not a lock that would have to wait there, nor a join of a thread that is not done. Main runs
//! first. Parked reads are left out. Whether a graph needs more than so many preemptions is
//! NP-complete to decide; two things keep it cheap here:
//! * a *witness* is kept: the cost and the last thread of some linearisation. An event without outgoing
//!   edges extends it, and as long as the extended witness is within the budget nothing is searched;
//! * the search is depth-first over (how far each thread has come, who runs), remembers with what
//!   budget a state failed, and lets the running thread go on wherever that cannot be wrong.
//!
//! A graph beyond the bound may still lead to one within it by a revisit that deletes events, so
//! the search goes on as long as the bound is exceeded by no more than the *slack* (§4): the number of
//! threads minus two, or the number of threads that have deletable events if that is less. (The
//! document's text speaks of threads that have none; that loses executions.)

use rustc_hash::FxHashMap;

use super::Level;
use crate::graph::{Event, Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::model::Model;
use crate::objects::ObjectFunction;
use crate::op::{Effect, Function, Op, Value};

/// Some linearisation of a graph that has so many events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witnessed {
    events: usize,
    cost: u32,
    last: ThreadId,
}

impl<C: Model> Level<C> {
    /// By how much the graph may exceed a bound, if the program has so many threads.
    pub(super) fn slack(&self, threads: usize) -> u32 {
        let deletable = (0..self.graph.threads()).filter(|&thread| {
            let events = self.graph.thread(ThreadId(thread as u32)).len();
            events > self.stable.get(thread).map_or(0, |&stable| stable as usize)
        });
        deletable.count().min(threads.saturating_sub(2)) as u32
    }

    /// Whether the graph has a linearisation with at most `budget` preemptions.
    pub(super) fn preemptions_within(&mut self, budget: u32) -> bool {
        if self.extend_witness().is_some_and(|cost| cost <= budget) {
            return true;
        }
        let linear = Linear::new(&self.graph, &self.model, &mut self.scratch);
        let found = linear.search(budget);
        if let Some((cost, last)) = found {
            let events = self.graph.len();
            self.witnesses.push(Witnessed { events, cost, last });
        }
        found.is_some()
    }

    /// Carries the witness on to the present graph, if only events without outgoing edges were
    /// added since. Returns its cost.
    fn extend_witness(&mut self) -> Option<u32> {
        let start = Witnessed {
            events: 0,
            cost: 0,
            last: ThreadId::MAIN,
        };
        // After a revisit the order of addition is no linearisation.
        let start = self.stable.is_empty().then_some(start);
        let base = self.witnesses.last().copied().or(start)?;
        let mut extended = base;
        for slot in base.events as Slot..self.graph.len() as Slot {
            let event = self.graph.event(slot);
            if !is_newest(&self.graph, slot, event) {
                return None;
            }
            let thread = event.id.thread;
            if event.kind != Kind::Parked && thread != extended.last {
                let began = event.id.index > 0 || thread == ThreadId::MAIN;
                extended.cost += u32::from(began);
                extended.last = thread;
            }
        }
        extended.events = self.graph.len();
        if extended.events > base.events {
            self.witnesses.push(extended);
        }
        Some(extended.cost)
    }

    /// Drops the witnesses of graphs with more than `events` events, which are left.
    pub(super) fn forget_witnesses(&mut self, events: usize) {
        while self
            .witnesses
            .last()
            .is_some_and(|last| last.events > events)
        {
            self.witnesses.pop();
        }
    }
}

/// Whether the event has no edge to an older one.
fn is_newest(graph: &Graph, slot: Slot, event: &Event) -> bool {
    let Some(location) = event.op.location() else {
        return true;
    };
    let write = if event.kind.reads() {
        event.source
    } else {
        slot
    };
    let newest = graph.coherence(location).last();
    // The write half of the same update does not count: the pair is one step.
    let own = |newest: Slot| event.kind == Kind::ReadHalf && newest == slot + 1;
    newest.is_none_or(|&newest| newest == write || own(newest))
}

/// What the search remembers, kept for its memory.
#[derive(Default)]
pub(crate) struct Scratch {
    ends: Vec<u32>,
    done: Vec<u32>,
    failed: FxHashMap<(u128, ThreadId), u32>,
}

/// The search for a linearisation.
pub(crate) struct Linear<'a, C> {
    graph: &'a Graph,
    model: &'a C,
    scratch: &'a mut Scratch,
}

impl<'a, C: Model> Linear<'a, C> {
    /// Over all of `graph`.
    pub(crate) fn new(graph: &'a Graph, model: &'a C, scratch: &'a mut Scratch) -> Linear<'a, C> {
        scratch.failed.clear();
        scratch.ends.clear();
        for thread in 0..graph.threads() {
            let events = graph.thread(ThreadId(thread as u32));
            let parked = events
                .last()
                .is_some_and(|&last| graph.event(last).kind == Kind::Parked);
            let performed = events.len() - usize::from(parked);
            scratch.ends.push(performed as u32);
        }
        Linear {
            graph,
            model,
            scratch,
        }
    }

    /// The cost and the last thread of a linearisation within `budget`, if there is one.
    pub(crate) fn search(mut self, budget: u32) -> Option<(u32, ThreadId)> {
        let threads = self.graph.threads();
        let mut done = std::mem::take(&mut self.scratch.done);
        done.clear();
        done.resize(threads, 0);
        let found = self.complete(&mut done, ThreadId::MAIN, budget);
        self.scratch.done = done;
        let (left, last) = found?;
        Some((budget - left, last))
    }

    /// Completes the linearisation from the state that ends `done`, a stack of states, and leaves the
    /// stack as it was; returns the budget left and the last thread.
    fn complete(
        &mut self,
        done: &mut Vec<u32>,
        running: ThreadId,
        budget: u32,
    ) -> Option<(u32, ThreadId)> {
        let top = done.len() - self.graph.threads();
        let now = &mut done[top..];
        while let Some(slot) = self.next(now, running) {
            let forced = self.goes_first(slot) && self.ready(now, slot);
            if !forced {
                break;
            }
            self.perform(now, slot);
        }
        if now == &self.scratch.ends[..] {
            return Some((budget, running));
        }
        let key = (self.key(now), running);
        if self
            .scratch
            .failed
            .get(&key)
            .is_some_and(|&failed| budget <= failed)
        {
            return None;
        }
        let found = self.branch(done, running, budget);
        if found.is_none() {
            self.scratch.failed.insert(key, budget);
        }
        found
    }

    /// Tries every thread that can go on, the running one first.
    fn branch(
        &mut self,
        done: &mut Vec<u32>,
        running: ThreadId,
        budget: u32,
    ) -> Option<(u32, ThreadId)> {
        let threads = self.graph.threads();
        let top = done.len() - threads;
        let own = self.next(&done[top..], running);
        let stays = own.is_some_and(|slot| self.ready(&done[top..], slot));
        if stays && let Some(found) = self.attempt(done, running, budget) {
            return Some(found);
        }
        let price = u32::from(own.is_some_and(|slot| !self.waits(&done[top..], slot)));
        let left = budget.checked_sub(price)?;
        for thread in (0..threads as u32).map(ThreadId) {
            let next = self.next(&done[top..], thread);
            let can = thread != running && next.is_some_and(|slot| self.ready(&done[top..], slot));
            if can && let Some(found) = self.attempt(done, thread, left) {
                return Some(found);
            }
        }
        None
    }

    /// Lets `thread` take its next operation and goes on from there.
    fn attempt(
        &mut self,
        done: &mut Vec<u32>,
        thread: ThreadId,
        budget: u32,
    ) -> Option<(u32, ThreadId)> {
        let top = done.len() - self.graph.threads();
        let slot = self.next(&done[top..], thread)?;
        done.extend_from_within(top..);
        let after = done.len() - self.graph.threads();
        self.perform(&mut done[after..], slot);
        let found = self.complete(done, thread, budget);
        done.truncate(after);
        found
    }

    fn next(&self, done: &[u32], thread: ThreadId) -> Option<Slot> {
        let at = done[thread.index()];
        let left = at < self.scratch.ends[thread.index()];
        left.then(|| self.graph.thread(thread)[at as usize])
    }

    /// The event that ends the operation at `slot`: an update's write half.
    fn end(&self, slot: Slot) -> Slot {
        let event = self.graph.event(slot);
        match event.kind {
            Kind::ReadHalf => self.graph.thread(event.id.thread)[event.id.index as usize + 1],
            _ => slot,
        }
    }

    fn perform(&self, done: &mut [u32], slot: Slot) {
        let id = self.graph.event(self.end(slot)).id;
        done[id.thread.index()] = id.index + 1;
    }

    /// Whether everything that comes before the operation is done.
    fn ready(&self, done: &[u32], slot: Slot) -> bool {
        let thread = self.graph.event(slot).id.thread.index();
        let before = self.model.linear_order(self.graph, self.end(slot));
        let ends = &self.scratch.ends;
        (0..done.len())
            .all(|other| other == thread || done[other] >= before[other].min(ends[other]))
    }

    /// Whether the running thread loses nothing by taking this operation at once: it is not its
    /// last one, and nobody's waiting depends on it.
    fn goes_first(&self, slot: Slot) -> bool {
        let last = self.graph.event(self.end(slot)).id;
        if last.index + 1 == self.scratch.ends[last.thread.index()] {
            return false;
        }
        match self.graph.event(slot).op {
            Op::Update {
                function: Function::Object(function),
                ..
            } => matches!(function, ObjectFunction::MutexLock { .. }),
            Op::Store { at, .. } => !self.is_object(at),
            _ => true,
        }
    }

    fn is_object(&self, location: Location) -> bool {
        let first = self.graph.reads(location).first();
        first.is_some_and(|&read| {
            let op = self.graph.event(read).op;
            matches!(
                op,
                Op::Update {
                    function: Function::Object(_),
                    ..
                }
            )
        })
    }

    /// Whether the operation could not be performed at this point.
    fn waits(&self, done: &[u32], slot: Slot) -> bool {
        let event = self.graph.event(slot);
        let unfinished = |thread: ThreadId| self.next(done, thread).is_some();
        match event.op {
            Op::Join { child } => unfinished(child),
            Op::JoinAll => (0..done.len() as u32)
                .map(ThreadId)
                .any(|other| other != event.id.thread && unfinished(other)),
            Op::Update { at, function, .. } => self
                .value(done, at)
                .is_some_and(|value| function.apply(value) == Effect::Block),
            _ => false,
        }
    }

    /// What the location holds at this point, if any event tells.
    fn value(&self, done: &[u32], location: Location) -> Option<Value> {
        let mut writes = self.graph.coherence(location).iter().rev();
        match writes.find(|&&write| self.graph.counted(done, write)) {
            Some(&write) => Some(self.graph.event(write).wrote),
            None => {
                let mut readers = self.graph.readers(location, INIT);
                readers.next().map(|reader| self.graph.event(reader).read)
            }
        }
    }

    /// One number for how far each thread has come. It is exact as long as the product of the
    /// threads' lengths fits into 128 bits, and a hash of that many bits beyond.
    fn key(&self, done: &[u32]) -> u128 {
        done.iter()
            .zip(&self.scratch.ends)
            .fold(0, |key: u128, (&done, &end)| {
                key.wrapping_mul(u128::from(end) + 1)
                    .wrapping_add(u128::from(done))
            })
    }
}
