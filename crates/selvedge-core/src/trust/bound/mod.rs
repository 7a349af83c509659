//! Preemption bound (Marmanis et al., "Reconciling Preemption Bounding with DPOR", §4 and §5): whether a graph
//! is worth extending.
//!
//! A graph beyond the bound may still lead to one within it by a revisit that deletes events. If it is small and nobody
//! waits, the search gives it up where what is left after any revisit is beyond the bound as well (`remains.rs`).
//! Otherwise it goes on as long as the bound is exceeded by no more than the *slack* (`slack.rs`). (The optimisation in
//! the document's §5 speaks of threads that have no deletable events; that loses executions.)
//!
//! Extending the left-most thread first makes for the smallest slack. As long as nothing exceeds the bound by more than
//! that, the search extends the thread that it extended last instead, which is cheaper: the order matters only for what
//! is cut off.
//!
//! Under weak models a graph need not have a linearisation; `linear/parts.rs` says what its preemptions are then.
//!
//! Whether a graph needs more than so many preemptions is NP-complete to decide. With few threads the order in which the
//! machine performs the graph mostly tells (`course.rs`); if not, a search does (`linear/packed.rs`). For other graphs a
//! linearisation is carried along (`linear/line.rs`): what is known of a graph holds for its extensions, and a number
//! that was not enough stays too small. Only where neither decides, a search does (`linear/search.rs`).

mod course;
mod remains;
mod slack;

pub(super) use course::{Course, Stretch};
pub(super) use slack::Slack;

use super::Level;
use crate::graph::{Graph, LANES, Slot};
use crate::linear::gaps;
use crate::linear::line::Line;
use crate::linear::packed::{Packed, has_objects};
use crate::linear::search::{Linear, Scratch};
use crate::model::{Model, SequentialConsistency};
use remains::Remains;

/// What a search for a linearisation costs, in checks that need none.
const SEARCH: u64 = 3;

/// How many graphs were checked in vain, and how many were cut off.
#[derive(Default)]
pub(super) struct Checks {
    in_vain: u64,
    cut_off: u64,
    /// Those among the latter that exceed the bound by more than the slack.
    by_slack: u64,
    /// How many executions ended beyond the bound.
    pub(super) ended: u64,
    /// How often the cheapest upper bound decided of an execution, and how often it did not.
    guessed: u64,
    guessed_in_vain: u64,
    packed: Box<Packed>,
}

impl Checks {
    /// Whether another one is worth while. Not before an execution has ended beyond the bound: until then there may be nothing to cut off.
    fn pay(&self) -> bool {
        self.ended > 0 && self.in_vain < 1000 + 8 * self.cut_off + self.ended / 2
    }

    /// Whether the order of threads matters: most is cut off, or something because of what the slack is.
    pub(super) fn cuts(&self) -> bool {
        self.cut_off > self.ended || self.by_slack > self.ended / 16
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
    /// Whether the graph may lead to executions with at most `bound` preemptions. False only if it certainly may not; how
    /// much is spent on finding out depends on what that brought so far.
    pub(super) fn may_stay_within(
        &mut self,
        bound: u32,
        course: &Course,
        checks: &mut Checks,
    ) -> bool {
        if !checks.pay() {
            return true;
        }
        if course.is_known() && !course.is_beyond(&self.graph, bound) && !has_objects(&self.graph) {
            return true;
        }
        if self.fits(&mut checks.packed) {
            let within = self.may_return_within(bound, &mut checks.packed);
            checks.count(within);
            return within;
        }
        if self.is_linear() && self.measure().line_is_within(bound) {
            return true;
        }
        let budget = bound.saturating_add(self.slack());
        let (within, searched) = self.is_within(budget);
        checks.in_vain += SEARCH * u64::from(searched);
        checks.count(within);
        checks.by_slack += u64::from(!within);
        within
    }

    /// The same for a small graph.
    fn may_return_within(&self, bound: u32, packed: &mut Packed) -> bool {
        packed.find_gaps();
        if packed.at_least(packed.all()) <= bound {
            return true;
        }
        let remains = Remains {
            packed,
            graph: &self.graph,
            stable: &self.stable,
            bound,
            sequential: self.model.sequential().is_some(),
        };
        remains.may_return()
    }

    /// Whether the graph, which is complete, needs no more than `bound` preemptions.
    pub(super) fn ends_within(
        &mut self,
        bound: u32,
        course: &mut Course,
        checks: &mut Checks,
    ) -> bool {
        if course.is_within(bound) {
            return true;
        }
        if course.is_beyond(&self.graph, bound) {
            return false;
        }
        if self.fits(&mut checks.packed) {
            checks.packed.find_gaps();
            if checks.packed.at_least(checks.packed.all()) > bound {
                return false;
            }
            course.lay(self);
            return course.is_within(bound) || checks.packed.is_within(bound);
        }
        course.lay(self);
        if course.is_within(bound) {
            return true;
        }
        if checks.guesses_pay() {
            let within = gaps::at_most(&self.graph) <= bound;
            checks.guessed(within);
            if within {
                return true;
            }
        }
        self.is_within(bound).0
    }

    /// Whether the graph is a small one that has linearisations. It is in the table then.
    fn fits(&self, packed: &mut Packed) -> bool {
        self.is_linear() && packed.fill(&self.graph, self.order())
    }

    /// Whether the graph needs no more than `budget` preemptions, and whether that took a search.
    fn is_within(&mut self, budget: u32) -> (bool, bool) {
        if self.is_linear() {
            return self.measure().is_within(budget);
        }
        let known = self.at_least.last();
        if known.is_some_and(|known| known.preemptions > budget) {
            return (false, false);
        }
        let Some(preemptions) = self.parts.exceed(&self.graph, budget) else {
            return (true, true);
        };
        let events = self.graph.len();
        self.at_least.push(AtLeast {
            events,
            preemptions,
        });
        (false, true)
    }

    /// Whether the graph has linearisations.
    pub(super) fn is_linear(&self) -> bool {
        self.model.sequential().is_some() || self.beside.is_whole(&self.graph)
    }

    /// The order of the graph's linearisations.
    fn order(&self) -> &SequentialConsistency {
        self.model.sequential().unwrap_or(&self.beside.order)
    }

    /// The clocks of that order, if there are few threads.
    pub(super) fn narrow_clocks(&self) -> Option<&[[u32; LANES]]> {
        let clocks = self.is_linear().then(|| self.order().clocks())?;
        clocks.narrow().filter(|_| self.graph.threads() <= LANES)
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
        let from = (&below.line, &below.graph);
        self.line.restrict(from, &self.graph, read);
    }

    /// Only the first `events` events remain.
    pub(super) fn shrink_bounds(&mut self, events: usize) {
        self.beside.undo(events);
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

    /// Whether `budget` preemptions are enough, and whether that took a search.
    fn is_within(&mut self, budget: u32) -> (bool, bool) {
        if self.line_is_within(budget) {
            return (true, false);
        }
        let known = self.at_least.last();
        if known.is_some_and(|known| known.preemptions > budget) {
            return (false, false);
        }
        let ends = &mut self.scratch.ends;
        if self.line.counts_within(self.graph, ends, budget) {
            return (true, false);
        }
        let mut linear = Linear::new(self.graph, self.order, self.scratch);
        let known = known.map_or(0, |known| known.preemptions);
        let mut preemptions = linear.at_least().max(known);
        let searches = preemptions <= budget;
        if searches {
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
        (preemptions <= budget, searches)
    }
}
