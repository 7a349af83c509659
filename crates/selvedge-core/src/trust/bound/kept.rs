//! Computes a part of a graph that every revisit keeps.
//!
//! Let *F* be an execution that the graph *G* leads to by revisits, *r* the earliest read (in the order of addition) that
//! these change, *E* the events of *G* that are changed or deleted on the way, and *P* the others. *P* is a part of *F*, so
//! it has no more preemptions than *F*: an order of *F*'s steps, with all others left out, is an order of *P*'s, and a thread
//! that had to wait in *F* has to wait there too, since what it waits for causes its next step. So if *P* is beyond the
//! bound for every possible *r* and every thread that may be the first to revisit, *G* leads to nothing within the bound.
//!
//! A write that wakes a parked update and deletes nothing does not count as a revisit here: parked updates are no steps of
//! *G*, so no step changes.
//!
//! * Everything added before *r* is in *P*, except updates that are parked again because the write that woke them is
//!   deleted.
//! * Events that were not added maximally, or that an earlier revisit depends on, are in *P* with their causes.
//! * The thread of the first write that revisits has more to do than it has done in *G*, so it has not ended. All that it
//!   has done is in *P* with its causes, because these are in the prefix of that write. If the thread is about to join
//!   another one, the same holds for that one.
//! * *E* was added maximally, also with respect to *P*. So no event that has to come before an event of *P* is in *E*.
//! * In *F*, *r* reads a write that has all in its prefix that the first thread to revisit has done in *G*: a later revisit
//!   cannot delete what an earlier one made stable. If events of *r*'s thread come before some of that, the thread is left
//!   between these and *r*. (Not under a weak model: *r* may be in none of the parts of *F* that count. Not if *r* may wait.)
//! * The later *r*, the larger *P*. So reads are looked at in the order of addition, until *P* alone is too much.
//!
//! None of this depends on the order in which threads are extended.

use crate::graph::{Clocks, Graph, Kind, Next, Slot};
use crate::ids::ThreadId;
use crate::linear::frontier::Frontier;

/// The knowledge about a part *P* and a read *r*.
pub(super) enum Verdict {
    /// *P* is within the bound, also with *r*.
    Within,
    /// Only *P* without *r* is.
    BeyondWithRead,
    /// *P* is beyond the bound.
    Beyond,
}

/// The events that no revisit deletes or changes.
pub(super) struct KeptPrefix<'a, F> {
    graph: &'a Graph,
    clocks: &'a Clocks,
    kept: F,
}

impl<'a, F: Frontier> KeptPrefix<'a, F> {
    /// `stable` counts the events that earlier revisits depend on.
    pub(super) fn new(graph: &'a Graph, clocks: &'a Clocks, stable: &[u32]) -> KeptPrefix<'a, F> {
        let mut kept = F::none(graph.threads());
        for (kept, &stable) in kept.as_mut().iter_mut().zip(stable) {
            *kept = stable;
        }
        kept.close(graph, clocks);
        for (slot, event) in graph.events().iter().enumerate() {
            let slot = slot as Slot;
            if event.id.index >= kept.get(event.id.thread.index())
                && (event.choice != 0 || !was_newest(graph, slot))
            {
                kept.join(clocks, slot);
            }
        }
        KeptPrefix {
            graph,
            clocks,
            kept,
        }
    }

    /// Whether revisits may lead to an execution within the bound, as `judge` tells of *P*, *r* and what the first thread to
    /// revisit has done. `None` if only the graph as it is may lead there.
    pub(super) fn may_return(
        &self,
        mut judge: impl FnMut(&F, Slot, &F) -> Verdict,
    ) -> Option<bool> {
        let graph = self.graph;
        // Every *P* has what is left if the first thread to revisit has done nothing.
        let nothing = F::none(graph.threads());
        let mut smallest = |part: &F, read, prefix: &F| match judge(part, read, prefix) {
            Verdict::Beyond => Verdict::Beyond,
            _ => Verdict::Within,
        };
        if self.may_return_by(&nothing, &mut smallest) == Some(false) {
            return Some(false);
        }
        let mut decided = None;
        for reviser in (0..graph.threads() as u32).map(ThreadId) {
            let mut prefix = F::none(graph.threads());
            let revisits = follow_joins(graph, reviser, |thread| {
                if let Some(last) = last_performed(graph, thread) {
                    prefix.join(self.clocks, last);
                }
            });
            if !revisits {
                continue;
            }
            match self.may_return_by(&prefix, &mut judge) {
                Some(true) => return Some(true),
                Some(false) => decided = Some(false),
                None => {}
            }
        }
        decided
    }

    /// The same if the first write that revisits has a certain prefix.
    fn may_return_by(
        &self,
        prefix: &F,
        judge: &mut impl FnMut(&F, Slot, &F) -> Verdict,
    ) -> Option<bool> {
        let graph = self.graph;
        let mut part = self.kept.clone();
        unite(&mut part, prefix);
        let mut earlier = F::none(graph.threads());
        for (slot, event) in graph.events().iter().enumerate() {
            let (thread, index) = (event.id.thread.index(), event.id.index);
            if event.kind.reads() && index >= part.get(thread) {
                unite(&mut part, &earlier);
                part.close(graph, self.clocks);
                if index >= part.get(thread) {
                    match judge(&part, slot as Slot, prefix) {
                        Verdict::Within => return Some(true),
                        Verdict::Beyond => return Some(false),
                        Verdict::BeyondWithRead => {}
                    }
                }
            }
            // An update that was woken is there only if the write that woke it is, as its write half tells.
            if event.kind != Kind::ReadHalf {
                earlier.set(thread, index + 1);
            }
        }
        None
    }
}

/// Adds the events of `other` to `frontier`.
fn unite<F: Frontier>(frontier: &mut F, other: &F) {
    crate::graph::join(frontier.as_mut(), other.as_ref());
}

/// The last event of a thread that is not a parked read: before its thread goes on, that reads another write.
fn last_performed(graph: &Graph, thread: ThreadId) -> Option<Slot> {
    let last = graph.last(thread)?;
    let event = graph.event(last);
    match event.kind {
        Kind::Parked => graph.predecessor(event.id),
        _ => Some(last),
    }
}

/// Visits `thread` and those that have to end before it goes on. False if it certainly revisits nothing: it has ended, or it
/// waits for all others to end, and has everything in its prefix then.
fn follow_joins(graph: &Graph, thread: ThreadId, mut visit: impl FnMut(ThreadId)) -> bool {
    let mut next = thread;
    // A cycle is a deadlock.
    for _ in 0..graph.threads() {
        visit(next);
        let last = graph.thread(next).last();
        next = match last.map(|&last| graph.event(last).next) {
            Some(Next::Nothing) if next == thread => return false,
            Some(Next::JoinAll) => return false,
            Some(Next::Join(child)) => child,
            Some(Next::Nothing | Next::Unknown) | None => return true,
        };
    }
    true
}

/// Whether the event read the newest write, or was the newest one, when it was added. Only such events can be deleted.
pub(super) fn was_newest(graph: &Graph, slot: Slot) -> bool {
    let event = graph.event(slot);
    let Some(location) = event.op.location() else {
        return true;
    };
    let write = match event.kind.reads() {
        true => event.source,
        false => slot,
    };
    let mut later = graph.later_writes(location, write).iter();
    // The write half of the same update does not count: it comes after its read half.
    let own = |&write: &Slot| event.kind == Kind::ReadHalf && write == slot + 1;
    later.all(|write| *write > slot || own(write))
}
