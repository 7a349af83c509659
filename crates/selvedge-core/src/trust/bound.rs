//! Preemption bound (Marmanis et al., "Reconciling Preemption Bounding with DPOR", §4 and §5): whether a graph
//! is worth extending.
//!
//! A graph beyond the bound may still lead to one within it by a revisit that deletes events, so the search
//! goes on as long as the bound is exceeded by no more than the *slack*. By Proposition 1, the events by which a graph
//! of the way to an execution differs from a part of that execution were added maximally, thread after thread from
//! left to right, begin with a read, leave out some thread to the right of that read, and are all deleted or
//! revisited later. By Lemma 2 they cost a preemption for each thread at most. So with *j* the left-most
//! thread that has such a read, the slack is the number of threads from *j* on whose last event can still be
//! deleted, but no more than there are threads to the right of *j*, and no more than all threads minus two
//! (Theorem 1). (The optimisation in the document's §5 speaks of threads that have no deletable events; that
//! loses executions.)
//!
//! Whether a graph needs more than so many preemptions is NP-complete to decide. What is known of a
//! graph holds for its extensions: a linearisation is carried along (`linear/line.rs`), a number that was
//! not enough stays too small. Only where neither decides, a search does (`linear/search.rs`).

use super::Level;
use crate::graph::{Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::linear::search::Linear;
use crate::model::Model;

/// What a search for a linearisation costs, in checks that need none.
const SEARCH: u64 = 3;

/// How many graphs were checked in vain, and how many were cut off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    in_vain: u64,
    cut_off: u64,
    /// How many executions ended beyond the bound.
    pub(super) ended: u64,
}

impl Checks {
    /// Whether another one is worth while.
    fn pay(&self) -> bool {
        self.in_vain < 1000 + 16 * self.cut_off + self.ended / 2
    }

    fn count(&mut self, within: bool) {
        match within {
            true => self.in_vain += 1,
            false => self.cut_off += 1,
        }
    }
}

/// A graph with so many events has at least so many preemptions.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtLeast {
    events: usize,
    preemptions: u32,
}

impl<C: Model> Level<C> {
    /// Whether the graph may lead to executions with at most `bound` preemptions, if the program has so many
    /// threads. False only if it certainly may not; how much is spent on finding out depends on what
    /// that brought so far.
    pub(super) fn may_stay_within(
        &mut self,
        bound: u32,
        threads: usize,
        checks: &mut Checks,
    ) -> bool {
        if !checks.pay() {
            return true;
        }
        self.line.extend(&self.graph, &self.model);
        if self.line.is_within(bound) {
            return true;
        }
        let budget = bound.saturating_add(self.slack(threads));
        let within = match self.is_known_within(budget) {
            Some(within) => within,
            None => self.is_shown_within(budget, checks),
        };
        checks.count(within);
        within
    }

    fn is_shown_within(&mut self, budget: u32, checks: &mut Checks) -> bool {
        let mut linear = Linear::new(&self.graph, &self.model, &mut self.scratch);
        let preemptions = linear.at_least();
        let events = self.graph.len();
        self.at_least.push(AtLeast {
            events,
            preemptions,
        });
        if preemptions > budget {
            return false;
        }
        checks.in_vain += SEARCH;
        let found = linear.search(&self.model, budget);
        if let Some((cost, order)) = found {
            self.line.replace(order, cost);
        }
        found.is_some()
    }

    /// By how much the graph may exceed a bound, if the program has so many threads.
    fn slack(&self, threads: usize) -> u32 {
        let known = self.graph.threads();
        let deletable = |thread: usize| {
            let stable = self.stable.get(thread).map_or(0, |&stable| stable as usize);
            let events = self.graph.thread(ThreadId(thread as u32));
            events.get(stable..).unwrap_or(&[]).iter().rev()
        };
        let reads = |&&slot: &&Slot| self.graph.event(slot).kind.reads();
        let added = |&slot: &Slot| was_newest(&self.graph, slot);
        let first = (0..known).find(|&thread| deletable(thread).filter(reads).any(added));
        let Some(first) = first else {
            return 0;
        };
        let ends = (first..known).filter(|&thread| deletable(thread).next().is_some_and(added));
        let right = threads.saturating_sub(1 + first.max(1));
        ends.count().min(right) as u32
    }

    /// Whether the graph has a linearisation with at most `budget` preemptions.
    pub(super) fn preemptions_within(&mut self, budget: u32) -> bool {
        self.line.extend(&self.graph, &self.model);
        if let Some(within) = self.is_known_within(budget) {
            return within;
        }
        let mut linear = Linear::new(&self.graph, &self.model, &mut self.scratch);
        match linear.search(&self.model, budget) {
            Some((cost, order)) => {
                self.line.replace(order, cost);
                true
            }
            None => false,
        }
    }

    /// Whether the graph has a linearisation with at most `budget` preemptions, if that shows without a search.
    fn is_known_within(&mut self, budget: u32) -> Option<bool> {
        if self.line.is_within(budget) {
            return Some(true);
        }
        let known = self.at_least.last();
        if known.is_some_and(|known| known.preemptions > budget) {
            return Some(false);
        }
        let ends = &mut self.scratch.ends;
        let within = self.line.counts_within(&self.graph, ends, budget);
        within.then_some(true)
    }

    /// Only the first `events` events remain.
    pub(super) fn shrink_bounds(&mut self, events: usize) {
        self.line.shrink(events);
        while self
            .at_least
            .last()
            .is_some_and(|last| last.events > events)
        {
            self.at_least.pop();
        }
    }
}

/// Whether the event read the newest write, or was the newest one, when it was added. Only such
/// events can be deleted.
fn was_newest(graph: &Graph, slot: Slot) -> bool {
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
