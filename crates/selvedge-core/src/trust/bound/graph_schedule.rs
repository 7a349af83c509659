//! A greedy schedule of the present graph. Its preemptions mostly show that the graph is within the bound.
//!
//! The schedule is kept up to date while the graph grows. An event that was just added comes before no other. So it can be
//! put at the end, or directly after the previous event of its thread, if everything that has to come before it was
//! performed when that thread was left.

use super::Level;
use super::kept::was_newest;
use crate::graph::{Clocks, Graph, Kind, LANES, Slot};
use crate::ids::ThreadId;
use crate::linear::frontier::{ALL, Blocks, Frontier};
use crate::linear::greedy::{self, Run};
use crate::linear::steps::Steps;
use crate::linear::{blocks, with_frontier};
use crate::model::Model;
use crate::op::Op;

/// A linearization of the present graph, if one is known.
#[derive(Debug, Default)]
pub(in crate::trust) struct GraphSchedule {
    known: bool,
    /// How many preemptions it has, at most.
    preemptions: u32,
    /// Whether the schedule that was found last is within the bound.
    was_within: bool,
    /// Its runs, as far as it was found at once; steps that were added since are not in them.
    runs: Vec<Run>,
    /// The thread that is running at the end.
    running: usize,
    /// The events performed, and those performed when each thread was left.
    done: Blocks<1>,
    left: [Blocks<1>; LANES],
}

impl GraphSchedule {
    /// The schedule of the empty graph.
    pub(in crate::trust) fn begin(&mut self) {
        self.runs.clear();
        self.follow_runs(0);
    }

    /// The machine takes steps that are not put into the schedule.
    pub(in crate::trust) fn forget(&mut self) {
        self.known = false;
    }

    /// Whether a schedule is known.
    pub(in crate::trust) fn is_known(&self) -> bool {
        self.known
    }

    /// Whether `bound` preemptions are certainly enough.
    pub(in crate::trust) fn is_within(&self, bound: u32) -> bool {
        self.known && self.preemptions <= bound
    }

    /// Whether the schedule that was found last is within the bound. The next one probably is then.
    pub(in crate::trust) fn was_within(&self) -> bool {
        self.was_within
    }

    /// Finds a schedule for the graph of `level`. Keeps as much of the previous one as is still possible, unless that takes
    /// more than `bound` preemptions.
    pub(in crate::trust) fn find<C: Model>(&mut self, level: &Level<C>, bound: u32) {
        let Some(clocks) = level.linear_clocks() else {
            self.forget();
            return;
        };
        let graph = &level.graph;
        let runs = &mut self.runs;
        if !self.was_within {
            runs.clear();
        }
        let kept = !runs.is_empty();
        let mut found = with_frontier!(graph, clocks, schedule::<F>(graph, clocks, runs));
        if kept && found.is_none_or(|preemptions| preemptions > bound) {
            runs.clear();
            found = with_frontier!(graph, clocks, schedule::<F>(graph, clocks, runs));
        }
        match found {
            Some(preemptions) => self.follow_runs(preemptions),
            None => self.forget(),
        }
        self.was_within = self.is_within(bound);
    }

    fn follow_runs(&mut self, preemptions: u32) {
        self.known = true;
        self.preemptions = preemptions;
        self.running = ThreadId::MAIN.index();
        self.done = Blocks::none(LANES);
        for run in &self.runs {
            let thread = run.thread.index() % LANES;
            self.done.set(thread, run.to);
            self.left[thread] = self.done;
            self.running = thread;
        }
    }

    /// The machine goes on with the newest operation, of which the last event is in slot `last`.
    pub(in crate::trust) fn go_on<C: Model>(&mut self, level: &Level<C>, last: Slot) {
        if !self.known {
            return;
        }
        let graph = &level.graph;
        let clocks = level.linear_clocks();
        let clocks = clocks.filter(|clocks| blocks(graph, clocks) == 1 && was_newest(graph, last));
        match clocks {
            Some(clocks) => self.append(graph, clocks, last),
            None => self.forget(),
        }
    }

    fn append(&mut self, graph: &Graph, clocks: &Clocks, last: Slot) {
        let event = graph.event(last);
        let own = event.id.thread.index() % LANES;
        let to = event.id.index + 1;
        if own != self.running {
            let first = event.id.index - u32::from(event.kind == Kind::WriteHalf);
            let mut left = self.left[own];
            left.set(own, ALL);
            if first > 0 && left.covers(clocks, last) {
                // Threads that were left later were left with this performed.
                for left in &mut self.left {
                    if left.get(own) == first {
                        left.set(own, to);
                    }
                }
            } else {
                let joins = matches!(event.op, Op::Join { .. } | Op::JoinAll);
                self.preemptions += u32::from(first > 0 && !joins);
                self.left[self.running] = self.done;
                self.running = own;
            }
        }
        self.done.set(own, to);
    }
}

fn schedule<F: Frontier>(graph: &Graph, clocks: &Clocks, runs: &mut Vec<Run>) -> Option<u32> {
    greedy::schedule(&Steps::<F>::all(graph, clocks), runs)
}
