//! An initial trace where simple schedules find none: the first execution of a search that ends well.

use std::ops::ControlFlow;

use rustc_hash::FxHashSet;

use super::constrained::Constrained;
use super::demands::Demands;
use super::initial;
use super::plan::Plan;
use super::relax::Watcher;
use super::reversal::{Pair, causes};
use super::strip::strip;
use super::trace::Trace;
use crate::graph::{Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::machine::SpinLoops;
use crate::model::SequentialConsistency;
use crate::report::{Bug, Counts, Ending, Observer};
use crate::trust;

/// How many complete executions are looked at: those that fail are complete as well.
const ENOUGH: usize = 200;

type Schedule = Vec<(ThreadId, u32)>;

struct Finder<'a, W> {
    watcher: &'a mut W,
    inputs: &'a [u32],
    told: bool,
    schedules: Vec<Schedule>,
}

impl<M: SpinLoops, W: Watcher<M>> Observer<Constrained<'_, M>> for Finder<'_, W> {
    fn complete(&mut self, graph: &Graph) {
        self.schedules.push(schedule(graph, self.inputs));
    }

    fn bug(&mut self, bug: &Bug, machine: &Constrained<'_, M>) {
        if !std::mem::replace(&mut self.told, true) {
            let bug = strip(bug, machine.flags(), self.inputs);
            self.watcher.bug(&bug, machine.inner());
        }
    }

    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        if self.schedules.len() >= ENOUGH {
            return ControlFlow::Break(());
        }
        self.watcher.progress(0)
    }
}

/// Looks for an execution that ends well.
pub(super) fn search<M: SpinLoops, W: Watcher<M>>(
    machine: &mut M,
    inputs: &[u32],
    watcher: &mut W,
) -> Result<Option<Trace>, Ending> {
    let mut finder = Finder {
        watcher,
        inputs,
        told: false,
        schedules: Vec::new(),
    };
    let plan = Plan {
        inputs,
        counted: &FxHashSet::default(),
        places: &[],
        demands: &Demands::default(),
        reversed: None,
    };
    let settings = trust::Settings {
        keep_going: true,
        preemptions: None,
    };
    let pair = Pair::default();
    let mut free = Constrained::new(machine, plan, &pair);
    let report = trust::search::<SequentialConsistency, _>(&mut free, settings, &mut finder);
    let schedules = finder.schedules;
    let enough = schedules.len() >= ENOUGH;
    let mut found = schedules.iter();
    let trace = found.find_map(|schedule| initial::repeat(machine, inputs, schedule));
    match report.ending {
        _ if trace.is_some() || enough => Ok(trace),
        Ending::Complete | Ending::FirstBug => Ok(None),
        ending => Err(ending),
    }
}

/// An order of the steps of `graph` in which each read sees the newest write.
fn schedule(graph: &Graph, inputs: &[u32]) -> Schedule {
    let mut done = vec![false; graph.len()];
    let mut order: Vec<Slot> = Vec::with_capacity(graph.len());
    for last in 0..graph.len() as Slot {
        let mut open = vec![(last, false)];
        while let Some((slot, ready)) = open.pop() {
            if ready {
                order.push(slot);
            } else if !std::mem::replace(&mut done[slot as usize], true) {
                open.push((slot, true));
                let mut before = Vec::new();
                causes(graph, slot, None, &mut before);
                open.extend(before.into_iter().map(|slot| (slot, false)));
            }
        }
    }
    let mut choices = inputs.iter();
    let step = |&slot: &Slot| {
        let event = graph.event(slot);
        let thread = event.id.thread;
        let input = matches!(event.op, crate::op::Op::Choose { .. }) && thread == ThreadId::MAIN;
        let given = if input { choices.next() } else { None };
        let choice = given.copied().unwrap_or(event.choice);
        (event.kind != Kind::WriteHalf && event.kind != Kind::Parked).then_some((thread, choice))
    };
    order.iter().filter_map(step).collect()
}
