//! Preemption bound (Marmanis et al., "Reconciling Preemption Bounding with DPOR", §4 and §5): whether a graph is
//! pruned.
//!
//! A graph beyond the bound may still lead to an execution within it, by a revisit that deletes events. The search gives
//! a graph up if what every possible revisit keeps of it is beyond the bound as well (`kept.rs`). The document instead
//! allows graphs to exceed the bound by a *slack*; that is too little where threads wait, and prunes less. (The
//! optimization in its §5 speaks of threads that have no deletable events; that loses executions.)
//!
//! Whether a graph is given up depends on the graph alone. Deciding whether a number of preemptions is enough is
//! NP-complete, so three procedures of `linear/` are tried in turn: a greedy schedule, which is kept up to date while the
//! graph grows (`graph_schedule.rs`), forced switches, and an exact search.
//!
//! Under weak models a graph need not have a linearization; `linear/parts.rs` defines its preemptions then.

mod graph_schedule;
mod kept;

pub(super) use graph_schedule::GraphSchedule;

use super::Level;
use crate::graph::{Clocks, Graph};
use crate::linear::exact;
use crate::linear::forced::ForcedSwitches;
use crate::linear::frontier::Frontier;
use crate::linear::greedy::{self, Run};
use crate::linear::parts::Parts;
use crate::linear::steps::{Steps, has_objects};
use crate::linear::with_frontier;
use crate::model::Model;
use kept::{KeptPrefix, Verdict};

/// Memory for the decisions, kept for its allocations only.
#[derive(Default)]
pub(super) struct Scratch {
    forced: ForcedSwitches,
    runs: Vec<Run>,
    parts: Parts,
}

impl<C: Model> Level<C> {
    /// Whether the graph may lead to executions with at most `bound` preemptions. False only if it certainly does not.
    pub(super) fn may_lead_within(&self, bound: u32, scratch: &mut Scratch) -> bool {
        let (graph, stable) = (&self.graph, &self.stable[..]);
        let sequential = self.model.sequential().is_some();
        match self.linear_clocks() {
            Some(clocks) => with_frontier!(
                graph,
                clocks,
                may_lead_within::<F>(graph, clocks, stable, sequential, bound, scratch)
            ),
            None => {
                let clocks = graph.causality_clocks();
                with_frontier!(
                    graph,
                    clocks,
                    parts_may_lead_within::<F>(graph, clocks, stable, bound, scratch)
                )
            }
        }
    }

    /// Whether the graph needs at most `bound` preemptions. `ended` tells whether the execution has ended.
    pub(super) fn is_within(&self, bound: u32, ended: bool, scratch: &mut Scratch) -> bool {
        let graph = &self.graph;
        match self.linear_clocks() {
            Some(clocks) => {
                with_frontier!(
                    graph,
                    clocks,
                    graph_is_within::<F>(graph, clocks, ended, bound, scratch)
                )
            }
            None => {
                let steps = Steps::<Box<[u32]>>::all(graph, graph.causality_clocks());
                scratch.parts.are_within(graph, &steps.ends, bound)
            }
        }
    }

    /// The clocks of the order of the graph's linearizations, if it has linearizations.
    pub(super) fn linear_clocks(&self) -> Option<&Clocks> {
        let overlay = || self.overlay.is_whole(&self.graph);
        match self.model.sequential() {
            Some(order) => Some(order.clocks()),
            None => overlay().then(|| self.overlay.order.clocks()),
        }
    }

    /// The graph was not grown but made anew.
    pub(super) fn rebuild_overlay(&mut self) {
        if self.bounded && self.model.sequential().is_none() {
            self.overlay.rebuild(&self.graph);
        }
    }
}

fn graph_is_within<F: Frontier>(
    graph: &Graph,
    clocks: &Clocks,
    ended: bool,
    bound: u32,
    scratch: &mut Scratch,
) -> bool {
    let steps = match ended {
        true => Steps::<F>::ended(graph, clocks),
        false => Steps::all(graph, clocks),
    };
    scratch.forced.measure(&steps);
    scratch.forced.at_least(&steps.ends) <= bound && is_within(&steps, bound, &mut scratch.runs)
}

/// Whether `steps`, which have no more forced switches than that, need at most `bound` preemptions.
fn is_within<F: Frontier>(steps: &Steps<'_, F>, bound: u32, runs: &mut Vec<Run>) -> bool {
    runs.clear();
    greedy::schedule(steps, runs).is_some_and(|number| number <= bound)
        || exact::is_within(steps, bound, runs)
}

fn may_lead_within<F: Frontier>(
    graph: &Graph,
    clocks: &Clocks,
    stable: &[u32],
    sequential: bool,
    bound: u32,
    scratch: &mut Scratch,
) -> bool {
    let Scratch { forced, runs, .. } = scratch;
    let steps = Steps::<F>::all(graph, clocks);
    forced.measure(&steps);
    let objects = has_objects(graph);
    if !objects && forced.at_least(&steps.ends) <= bound {
        return true;
    }
    let kept = KeptPrefix::<F>::new(graph, clocks, stable);
    let decided = kept.may_return(|part, read, prefix| {
        let part = steps.restricted(part);
        let least = forced.at_least(&part.ends);
        // Without objects the forced switches nearly always are all preemptions there are.
        if least > bound || (objects && !is_within(&part, bound, runs)) {
            return Verdict::Beyond;
        }
        let event = graph.event(read);
        let (thread, index) = (event.id.thread.index(), event.id.index as usize);
        let leaves = sequential
            && !event.op.may_wait()
            && index as u32 <= steps.ends.get(thread)
            && forced.gap_follows(thread, index, prefix.get(thread));
        match least + u32::from(leaves) <= bound {
            true => Verdict::Within,
            false => Verdict::BeyondWithRead,
        }
    });
    decided
        .unwrap_or_else(|| forced.at_least(&steps.ends) <= bound && is_within(&steps, bound, runs))
}

/// The same for a graph that has no linearization.
fn parts_may_lead_within<F: Frontier>(
    graph: &Graph,
    causality: &Clocks,
    stable: &[u32],
    bound: u32,
    scratch: &mut Scratch,
) -> bool {
    let steps = Steps::<F>::all(graph, causality);
    let kept = KeptPrefix::<F>::new(graph, causality, stable);
    let parts = &mut scratch.parts;
    let decided = kept.may_return(|part, _, _| {
        let part = steps.restricted(part);
        match parts.are_within(graph, part.ends.as_ref(), bound) {
            true => Verdict::Within,
            false => Verdict::Beyond,
        }
    });
    decided.unwrap_or_else(|| parts.are_within(graph, steps.ends.as_ref(), bound))
}
