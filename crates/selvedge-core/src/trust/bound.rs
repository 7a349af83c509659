//! Preemption bound (Marmanis et al., "Reconciling Preemption Bounding with DPOR", §4 and §5): whether a graph
//! is worth extending.
//!
//! A graph beyond the bound may still lead to one within it by a revisit that deletes events, so the search
//! goes on as long as the bound is exceeded by no more than the *slack*. By Proposition 1, the events by which a graph
//! of the way to an execution differs from a part of that execution were added maximally, thread after thread from
//! left to right, begin with a read, leave out some thread to the right of that read, and are all deleted or
//! revisited later. By Lemma 2 they cost a preemption for each thread at most. So with *r* such a read and *j* its
//! thread, the slack is the number of threads from *j* on that end with an event which was added since and can still be
//! deleted, but no more than there are threads to the right of *j*, and no more than all threads minus two
//! (Theorem 1); the largest over all *r*. (The optimisation in the document's §5 speaks of threads that have no deletable
//! events; that loses executions.)
//!
//! One less where everything that was added before *r* comes before it in any case. The proof of Theorem 1 has this for the left-most
//! thread; it needs no more than that. A linearisation of the execution, cut off after *r*, ends with *r* then. Either the step before is one of the same
//! thread: adding the older reading in its place costs nothing. Or the thread was left, which cost a preemption that is saved where
//! *r* is taken away, unless *r* had to wait. Creations do not count: they can be moved forward. So main, where it only creates and joins, is as good as
//! not there, and two workers need no slack at all.
//!
//! As long as nothing exceeds the bound by more than that, the search extends the thread that it extended last instead, which is cheaper: the
//! order matters only for what is cut off. Where it has led to a graph, the events in question come in runs of one
//! thread each, and cost a preemption for each run at most.
//!
//! Under weak models a graph need not have a linearisation; `linear/parts.rs` says what its preemptions are then. Theorem 1 does not hold
//! for them: where it saves a preemption, it relies on the execution having to leave thread 0 as well, before a read
//! that may be in none of the parts which count. The rest of the argument is about parts of graphs and stays as it is.
//!
//! Whether a graph needs more than so many preemptions is NP-complete to decide. What is known of a
//! graph holds for its extensions: a linearisation is carried along (`linear/line.rs`), a number that was
//! not enough stays too small. Only where neither decides, a search does (`linear/search.rs`).

use super::Level;
use crate::graph::{Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::linear::gaps;
use crate::linear::line::Line;
use crate::linear::search::{Linear, Scratch};
use crate::model::{Model, SequentialConsistency};
use crate::op::Op;

/// What a search for a linearisation costs, in checks that need none.
const SEARCH: u64 = 3;

/// How many graphs were checked in vain, and how many were cut off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Checks {
    in_vain: u64,
    cut_off: u64,
    /// Some graph was beyond the bound by more than the slack of the left-most order.
    cuts: bool,
    /// How many executions ended beyond the bound.
    pub(super) ended: u64,
    /// How often the cheapest upper bound decided of an execution, and how often it did not.
    guessed: u64,
    guessed_in_vain: u64,
}

impl Checks {
    /// Whether another one is worth while.
    fn pay(&self) -> bool {
        self.in_vain < 1000 + 16 * self.cut_off + self.ended / 2
    }

    /// Whether the order of threads matters: there is something to cut off.
    pub(super) fn cuts(&self) -> bool {
        self.cuts
    }

    /// Whether the cheapest upper bound is worth another try.
    fn guesses_pay(&self) -> bool {
        self.guessed_in_vain < 100 + 2 * self.guessed
    }

    fn guessed(&mut self, within: bool) {
        match within {
            true => self.guessed += 1,
            false => self.guessed_in_vain += 1,
        }
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
        if self.is_linear() && self.measure().line_is_within(bound) {
            return true;
        }
        let budget = bound.saturating_add(self.slack(threads));
        let mut within = self.is_within(budget, checks);
        if !within {
            checks.cuts = true;
            if self.strayed.is_some() {
                let budget = bound.saturating_add(self.slack_of_any_order());
                within = self.is_within(budget, checks);
            }
        }
        checks.count(within);
        within
    }

    /// Whether the graph, which is complete, needs no more than `bound` preemptions.
    pub(super) fn ends_within(&mut self, bound: u32, checks: &mut Checks) -> bool {
        if checks.guesses_pay() {
            let within = gaps::at_most(&self.graph) <= bound;
            checks.guessed(within);
            if within {
                return true;
            }
        }
        self.is_within(bound, checks)
    }

    /// Whether the graph needs no more than `budget` preemptions.
    fn is_within(&mut self, budget: u32, checks: &mut Checks) -> bool {
        if self.is_linear() {
            return self.measure().is_within(budget, checks);
        }
        let known = self.at_least.last();
        if known.is_some_and(|known| known.preemptions > budget) {
            return false;
        }
        checks.in_vain += SEARCH;
        let Some(preemptions) = self.parts.exceed(&self.graph, budget) else {
            return true;
        };
        let events = self.graph.len();
        self.at_least.push(AtLeast {
            events,
            preemptions,
        });
        false
    }

    /// Whether the graph has linearisations.
    fn is_linear(&self) -> bool {
        self.model.sequential().is_some() || self.beside.is_whole(&self.graph)
    }

    fn measure(&mut self) -> Measure<'_> {
        Measure {
            graph: &self.graph,
            order: self.model.sequential().unwrap_or(&self.beside.order),
            line: &mut self.line,
            at_least: &mut self.at_least,
            scratch: &mut self.scratch,
        }
    }

    /// The graph was cut down from that of `below`, and the read in slot `read` sees the newest event now.
    pub(super) fn restrict_bounds(&mut self, below: &Level<C>, read: Slot) {
        if self.model.sequential().is_none() {
            self.beside.rebuild(&self.graph);
        }
        self.strayed = below.strayed.map(|_| 0);
        let from = (&below.line, &below.graph);
        self.line.restrict(from, &self.graph, read);
    }

    /// By how much the graph may exceed a bound, if the program has so many threads and only the left-most ones were
    /// extended.
    fn slack(&self, threads: usize) -> u32 {
        let sequential = self.model.sequential().is_some();
        let most = threads.saturating_sub(1 + usize::from(sequential));
        let mut slack = 0;
        for thread in 0..self.graph.threads() {
            let right = threads.saturating_sub(1 + thread);
            for &read in self.deletable(thread).filter(|&&slot| self.is_read(slot)) {
                if slack >= right.min(most) {
                    break;
                }
                if was_newest(&self.graph, read) {
                    let extended = self.extended_since(read, thread).min(right);
                    let free = sequential && self.is_extended_freely(read);
                    let costly = extended.saturating_sub(usize::from(free));
                    slack = slack.max(costly.min(most));
                }
            }
        }
        slack as u32
    }

    /// The events of a thread that no revisit has made stable.
    fn deletable(&self, thread: usize) -> std::slice::Iter<'_, Slot> {
        let stable = self.stable.get(thread).map_or(0, |&stable| stable as usize);
        let events = self.graph.thread(ThreadId(thread as u32));
        events.get(stable..).unwrap_or(&[]).iter()
    }

    fn is_read(&self, slot: Slot) -> bool {
        self.graph.event(slot).kind.reads()
    }

    /// How many threads, from the one of `read` on, end with an event that was added no earlier than that and can be deleted.
    fn extended_since(&self, read: Slot, thread: usize) -> usize {
        let ends = (thread..self.graph.threads()).filter(|&thread| {
            let last = self.deletable(thread).next_back();
            last.is_some_and(|&last| last >= read && was_newest(&self.graph, last))
        });
        ends.count()
    }

    /// Whether everything that was added before `read` must come before it, where threads that were only created do not matter, and
    /// it does not wait.
    fn is_extended_freely(&self, read: Slot) -> bool {
        let graph = &self.graph;
        let event = graph.event(read);
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

    /// By how much the graph may exceed a bound, whatever threads were extended.
    fn slack_of_any_order(&self) -> u32 {
        let graph = &self.graph;
        let deletable = |&slot: &Slot| {
            let id = graph.event(slot).id;
            let stable = self.stable.get(id.thread.index());
            stable.is_none_or(|&stable| id.index >= stable) && was_newest(graph, slot)
        };
        let reads = |&slot: &Slot| graph.event(slot).kind.reads();
        let slots = (0..graph.len() as Slot).filter(deletable);
        let mut runs = 0;
        let mut last = None;
        for slot in slots.skip_while(|slot| !reads(slot)) {
            let thread = graph.event(slot).id.thread;
            runs += u32::from(last.replace(thread) != Some(thread));
        }
        runs
    }

    /// Only the first `events` events remain.
    pub(super) fn shrink_bounds(&mut self, events: usize) {
        self.beside.undo(events);
        self.strayed = self.strayed.filter(|&before| before < events);
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

/// What tells the preemptions of a graph that has linearisations.
struct Measure<'a> {
    graph: &'a Graph,
    order: &'a SequentialConsistency,
    line: &'a mut Line,
    at_least: &'a mut Vec<AtLeast>,
    scratch: &'a mut Scratch,
}

impl Measure<'_> {
    /// Whether the line that is carried along has at most `budget` preemptions.
    fn line_is_within(&mut self, budget: u32) -> bool {
        self.line.extend(self.graph, self.order);
        self.line.is_within(budget)
    }

    fn is_within(&mut self, budget: u32, checks: &mut Checks) -> bool {
        if self.line_is_within(budget) {
            return true;
        }
        let known = self.at_least.last();
        if known.is_some_and(|known| known.preemptions > budget) {
            return false;
        }
        let ends = &mut self.scratch.ends;
        if self.line.counts_within(self.graph, ends, budget) {
            return true;
        }
        let mut linear = Linear::new(self.graph, self.order, self.scratch);
        let known = known.map_or(0, |known| known.preemptions);
        let mut preemptions = linear.at_least().max(known);
        if preemptions <= budget {
            checks.in_vain += SEARCH;
            let found = linear.search_from(self.order, preemptions, budget);
            preemptions = found.map_or(budget + 1, |(cost, _)| cost);
            if let Some((cost, order)) = found {
                self.line.replace(order, cost);
            }
        }
        let events = self.graph.len();
        self.at_least.push(AtLeast {
            events,
            preemptions,
        });
        preemptions <= budget
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
