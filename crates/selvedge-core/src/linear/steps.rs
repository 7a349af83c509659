//! A part of a graph whose events are to be put in order: which step can come next, and what leaving a thread costs.
//!
//! A step is an operation. The two halves of an update are performed together. Parked reads and read halves without
//! their write half are not performed.

use super::Part;
use super::frontier::{ALL, Frontier};
use crate::graph::{Clocks, Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::op::{Function, Op};

/// A part of a graph that has, with each event, everything that comes before it in all linearizations.
#[derive(Clone)]
pub(crate) struct Steps<'a, F> {
    pub(crate) graph: &'a Graph,
    /// The events before each event, itself included.
    pub(crate) clocks: &'a Clocks,
    /// The part: this many events of each thread.
    pub(crate) ends: F,
    /// Whether the execution has ended: a thread that waits for good at the end of its part could have gone on earlier,
    /// as long as the object was free.
    ended: bool,
}

impl<'a, F: Frontier> Steps<'a, F> {
    /// All that is performed of `graph`.
    pub(crate) fn all(graph: &'a Graph, clocks: &'a Clocks) -> Steps<'a, F> {
        Steps::of(graph, clocks, false)
    }

    /// The same for an execution that has ended. A compare-exchange that is repeated for ever counts as a step, once.
    pub(crate) fn ended(graph: &'a Graph, clocks: &'a Clocks) -> Steps<'a, F> {
        Steps::of(graph, clocks, true)
    }

    fn of(graph: &'a Graph, clocks: &'a Clocks, ended: bool) -> Steps<'a, F> {
        let mut ends = F::none(graph.threads());
        for thread in 0..graph.threads() {
            let events = graph.thread(ThreadId(thread as u32));
            let last = events.last().map(|&last| graph.event(last));
            let left_out = last.is_some_and(|last| match last.kind {
                Kind::Parked => !ended || last.op.may_wait(),
                Kind::ReadHalf => true,
                _ => false,
            });
            ends.as_mut()[thread] = events.len() as u32 - u32::from(left_out);
        }
        Steps {
            graph,
            clocks,
            ends,
            ended,
        }
    }

    /// The steps that `part` has.
    pub(crate) fn restricted(&self, part: &F) -> Steps<'a, F> {
        let mut steps = self.clone();
        for (end, &count) in steps.ends.as_mut().iter_mut().zip(part.as_ref()) {
            *end = (*end).min(count);
        }
        steps
    }

    pub(crate) fn threads(&self) -> usize {
        self.graph.threads()
    }

    /// The events of `thread`.
    #[inline]
    pub(crate) fn events(&self, thread: usize) -> &'a [Slot] {
        let events = self.graph.thread(ThreadId(thread as u32));
        &events[..self.ends.get(thread) as usize]
    }

    /// Nothing has been performed. A thread of which everything has been performed counts as [`ALL`], so that nothing
    /// waits for events that are never performed.
    pub(crate) fn start(&self) -> F {
        let mut done = F::none(self.threads());
        for (done, &end) in done.as_mut().iter_mut().zip(self.ends.as_ref()) {
            *done = if end == 0 { ALL } else { 0 };
        }
        done
    }

    /// Performs the events of `thread` up to the one with index `to`.
    #[inline]
    pub(crate) fn perform(&self, done: &mut F, thread: usize, to: u32) {
        let ends = to == self.ends.get(thread);
        done.set(thread, if ends { ALL } else { to });
    }

    /// How far `thread` gets if it is now before its event `from`, and the event that cannot be performed then.
    #[inline]
    pub(crate) fn run(&self, done: &mut F, thread: usize, from: usize) -> (u32, Option<Slot>) {
        let events = self.events(thread);
        let before = done.get(thread);
        done.set(thread, ALL);
        let mut at = from;
        let mut blocked = None;
        while let Some(&slot) = events.get(at) {
            if !done.covers(self.clocks, slot) {
                blocked = Some(slot);
                break;
            }
            at += 1;
        }
        done.set(thread, before);
        let halved = blocked.is_some() && at > from;
        if halved && self.graph.event(events[at - 1]).kind == Kind::ReadHalf {
            at -= 1;
        }
        (at as u32, blocked)
    }

    /// The next step of `thread`: its first event, if it can be performed, and where the thread is afterwards.
    pub(crate) fn next(&self, done: &mut F, thread: usize) -> Option<(Slot, u32)> {
        let events = self.events(thread);
        let at = done.get(thread) as usize;
        let &first = events.get(at)?;
        let halves = usize::from(self.graph.event(first).kind == Kind::ReadHalf);
        let to = (at + 1 + halves).min(events.len());
        done.set(thread, ALL);
        let ready = done.covers(self.clocks, events[to - 1]);
        done.set(thread, at as u32);
        ready.then_some((first, to as u32))
    }

    /// Whether leaving `thread` at this point is no preemption: it has nothing more to do, or has to wait.
    pub(crate) fn leaves_freely(&self, done: &F, thread: usize) -> bool {
        let end = self.ends.get(thread);
        let at = done.get(thread).min(end) as usize;
        let events = self.graph.thread(ThreadId(thread as u32));
        let next = events.get(at).filter(|&&slot| {
            at < end as usize || (self.ended && self.graph.event(slot).kind == Kind::Parked)
        });
        next.is_none_or(|&slot| self.waits(done, slot))
    }

    fn waits(&self, done: &F, slot: Slot) -> bool {
        self.graph.event(slot).op.may_wait() && {
            let ends = self.ends.as_ref();
            // Events of the graph that are not in the part have not been performed.
            let mut done = done.clone();
            for (done, &end) in done.as_mut().iter_mut().zip(ends) {
                *done = (*done).min(end);
            }
            let graph = self.graph;
            Part { graph, ends }.waits(done.as_ref(), slot)
        }
    }
}

/// Whether there are operations on other objects than memory.
pub(crate) fn has_objects(graph: &Graph) -> bool {
    let objects = |&location: &_| is_object(graph, location);
    graph.locations().iter().any(objects)
}

/// Whether `location` is an object other than memory.
pub(super) fn is_object(graph: &Graph, location: crate::ids::Location) -> bool {
    let first = graph.reads(location).first();
    let op = first.map(|&read| graph.event(read).op);
    matches!(
        op,
        Some(Op::Update {
            function: Function::Object(_),
            ..
        })
    )
}
