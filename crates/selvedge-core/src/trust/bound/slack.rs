//! By how much a graph may exceed the bound and still lead to executions within it.
//!
//! Let *F* be an execution that the graph *G* leads to by revisits, *r* the earliest read (in the order of addition) that these change,
//! *E* the events of *G* that are changed or deleted on the way, and *P* the others, which are a part of *F*. Then:
//! * Everything added before *r* is in *P*, except updates that fall asleep again because what woke them is deleted.
//! * What was not added maximally, or was made stable by an earlier revisit, is in *P*, and so is all that causes it.
//! * The thread of the first write that revisits has more to do than it has done in *G*, so it is none that has ended, and all that it has done is in *P* with its
//!   causes: they are in the prefix of that write, which is stable from then on. If it is about to join another thread, that holds for what that one has done as well.
//! * *E* was added maximally, also with respect to *P*. So what is left of a linearisation of *F* for *P*, followed by *E* in the order of addition, is a
//!   linearisation of *G*. Each run of events of one thread in *E* adds one preemption at most: where its thread was left before.
//! * A run that begins with the join of a thread adds none if the thread's last event is in *E*, since the join would have had to wait. If it is not in *E*, neither
//!   is the run that it ends, which is counted.
//! * The first run adds none if everything that was added before *r* has to come before the event of its thread that precedes *r*. Up to there, a linearisation of
//!   *F* ends with that event then, or the thread was left before *r* in *F* as well, which was a preemption if *r* does not
//!   wait. (Creations of threads do not matter: they can be moved forward.)
//!
//! So the slack is the largest number of such runs that follow one of the reads. This does not depend on the order in which threads are extended; left-most
//! first makes for the fewest runs. Without operations that wait there is one run for each thread then, and
//! what is left is the slack of Theorem 1 of the document, all threads minus two. With them there can be more, and executions would be lost: a thread that waits
//! for a mutex is left and goes on later, while others have gone on in between.
//!
//! Under a weak model the last of the points does not hold: *r* may be in none of the parts that count.

use super::Level;
use crate::graph::{Graph, Kind, Next, Slot, join};
use crate::ids::ThreadId;
use crate::linear::operation_begin;
use crate::model::Model;
use crate::op::Op;

/// What the counting of runs needs, kept for its memory.
#[derive(Debug, Default)]
pub(in crate::trust) struct Slack {
    /// Counts what is never deleted.
    kept: Vec<u32>,
    /// The same if a certain thread is the first that revisits.
    with_reviser: Vec<u32>,
    /// The last events of threads whose join was counted although it is free once these are met.
    refunds: Vec<Slot>,
}

impl<C: Model> Level<C> {
    /// By how much the graph may exceed a bound.
    pub(super) fn slack(&mut self) -> u32 {
        let mut slack = std::mem::take(&mut self.slack);
        self.count_kept(&mut slack.kept);
        let free = self.model.sequential().is_some();
        let graph = &self.graph;
        let mut most = 0;
        for reviser in (0..graph.threads() as u32).map(ThreadId) {
            slack.with_reviser.clone_from(&slack.kept);
            let revisits = follow_joins(graph, reviser, |thread| {
                if let Some(last) = last_performed(graph, thread) {
                    join(&mut slack.with_reviser, graph.causality(last));
                }
            });
            if revisits {
                most = most.max(slack.runs(graph, free));
            }
        }
        self.slack = slack;
        most
    }

    /// Counts the events that no revisit deletes or changes, with their causes.
    fn count_kept(&self, kept: &mut Vec<u32>) {
        let graph = &self.graph;
        kept.clear();
        kept.resize(graph.threads(), 0);
        for (kept, &stable) in kept.iter_mut().zip(&self.stable) {
            *kept = stable;
        }
        for slot in 0..graph.len() as Slot {
            if !graph.counted(kept, slot)
                && (graph.event(slot).choice != 0 || !was_newest(graph, slot))
            {
                join(kept, graph.causality(slot));
            }
        }
    }
}

impl Slack {
    /// The largest number of runs, from one of the reads on, of events that may be deleted.
    fn runs(&mut self, graph: &Graph, free: bool) -> u32 {
        self.refunds.clear();
        let mut most = 0;
        let mut runs = 0u32;
        // The first event, as far as is known, of the run that the present event may belong to.
        let mut first: Option<Slot> = None;
        for slot in (0..graph.len() as Slot).rev() {
            let event = graph.event(slot);
            if graph.counted(&self.with_reviser, operation_begin(graph, slot)) {
                continue;
            }
            if event.kind != Kind::Parked {
                let thread = event.id.thread;
                if first.is_none_or(|first| graph.event(first).id.thread != thread) {
                    if let Some(first) = first {
                        self.refund(graph, first, slot);
                    }
                    runs += 1;
                }
                first = Some(slot);
            }
            if self.refunds.contains(&slot) {
                runs -= 1;
            }
            if event.kind.reads() && most < runs {
                // A read that is parked is no step, so the first run is another thread's.
                let free = free && event.kind != Kind::Parked && is_free(graph, slot);
                most = most.max(runs - u32::from(free));
            }
        }
        most
    }

    /// If the run that begins with `first` begins with the join of a thread that was not done when its own thread was left, remembers to take it back.
    /// Events up to `slot` have not been looked at.
    fn refund(&mut self, graph: &Graph, first: Slot, slot: Slot) {
        let event = graph.event(first);
        let Op::Join { child } = event.op else {
            return;
        };
        let left = graph.predecessor(event.id);
        let last = graph.thread(child).last().copied();
        if let Some(last) = last
            && last <= slot
            && left.is_none_or(|left| left < last)
            && !self.refunds.contains(&last)
        {
            self.refunds.push(last);
        }
    }
}

/// Whether `read` is the first event of its thread, which nobody has left before, or everything that was added before it must come before what precedes it in its thread, where
/// creations do not matter, and it does not wait.
fn is_free(graph: &Graph, read: Slot) -> bool {
    let event = graph.event(read);
    if event.id.index == 0 && event.id.thread != ThreadId::MAIN {
        return true;
    }
    let Some(previous) = graph.predecessor(event.id).filter(|_| !event.op.may_wait()) else {
        return false;
    };
    let before = graph.causality(previous);
    (0..graph.threads()).all(|thread| {
        let events = graph.thread(ThreadId(thread as u32));
        let others = events.iter().skip(before[thread] as usize);
        others
            .take_while(|&&slot| slot < read)
            .all(|&slot| matches!(graph.event(slot).op, Op::Create { .. }))
    })
}

/// The last event of a thread that is not a parked read: what that will see before its thread goes on is another write.
fn last_performed(graph: &Graph, thread: ThreadId) -> Option<Slot> {
    let last = graph.last(thread)?;
    let event = graph.event(last);
    match event.kind {
        Kind::Parked => graph.predecessor(event.id),
        _ => Some(last),
    }
}

/// Visits `thread` and those that have to end before it goes on. False if it is known to revisit nothing: it has ended, or waits for all others to
/// end, and has everything in its prefix then.
pub(super) fn follow_joins(
    graph: &Graph,
    thread: ThreadId,
    mut visit: impl FnMut(ThreadId),
) -> bool {
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

/// Whether the event read the newest write, or was the newest one, when it was added. Only such
/// events can be deleted.
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
