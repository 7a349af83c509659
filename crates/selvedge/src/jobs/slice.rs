//! Exploring one work unit.

use std::ops::ControlFlow;
use std::time::Instant;

use selvedge_core::graph::{Graph, Slot};
use selvedge_core::report::{Bug, Counts, Divergence, Ending, Observer};
use selvedge_core::trust::{self, Budget, Settings, Unit};
use selvedge_core::{Fact, Portable as _, with_model};
use selvedge_page::{BugPage, Origin, Origins};
use serde::{Deserialize, Serialize};

use crate::model::{Failure, MemoryModel};
use crate::report;
use crate::rt::RustMachine;

/// A bug that was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct KnownBug {
    raw: selvedge_core::Failure,
    pub(crate) failure: Failure,
    pub(crate) page: BugPage,
}

impl trust::Known for KnownBug {
    fn failure(&self) -> &selvedge_core::Failure {
        &self.raw
    }
}

/// The result of a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sliced {
    /// Why the slice ended.
    pub(super) ending: Ending,
    pub(super) counts: Counts,
    pub(super) bug: Option<KnownBug>,
    /// The bug was found in the execution with this number.
    pub(super) first_bug: Option<u64>,
    /// The rest, in the order of the search tree.
    pub(super) rest: Vec<Unit>,
    /// The search has to start over, knowing this.
    pub(super) again: Option<Vec<(Fact, Fact)>>,
    /// Whether executions were left out because a thread had timed out as often as it may.
    pub(super) ran_out_of_time: bool,
    /// Whether memory was freed that was not protected.
    pub(super) unprotected: bool,
    /// How the program did something else when it was run again.
    pub(super) differs: Option<String>,
    /// Where its executions come from, if a report is wanted.
    pub(super) origins: Option<Vec<Origin>>,
}

/// How units of a model are explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Search {
    pub(crate) model: MemoryModel,
    pub(crate) settings: Settings,
}

/// Explores `unit`, or everything if there is none.
pub(super) fn explore(
    search: Search,
    machine: &mut RustMachine,
    unit: Option<Unit>,
    (budget, pieces): (Budget, u64),
    seen: &mut dyn FnMut(&Counts) -> ControlFlow<()>,
) -> Sliced {
    let mut slicer = Slicer {
        model: search.model,
        budget,
        start: Instant::now(),
        executions: 0,
        ended: 0,
        bug: None,
        first_bug: None,
        origins: Origins::new(machine.sites()),
        seen,
    };
    let work = (unit, Vec::new());
    let settings = search.settings;
    let answer = with_model!(search.model, C => {
        trust::slice::<C, _>(machine, settings, work, &mut slicer)
    });
    machine.end_slice();
    let differs = match &answer.report.ending {
        Ending::Nondeterministic(Divergence::Operation { thread, .. }) => {
            Some(machine.explain(*thread))
        }
        Ending::Nondeterministic(what) => Some(what.to_string()),
        _ => None,
    };
    Sliced {
        ending: answer.report.ending,
        counts: answer.report.counts,
        bug: slicer.bug,
        first_bug: slicer.first_bug,
        rest: answer
            .rest
            .map_or_else(Vec::new, |rest| rest.pieces(pieces)),
        again: machine.starts_over().then(|| machine.learned()),
        ran_out_of_time: machine.ran_out_of_time(),
        unprotected: machine.left_unprotected(),
        differs,
        origins: report::lines(&slicer.origins, machine),
    }
}

/// Explores the first execution only: all processes must do the same there.
pub(super) fn first_execution(search: Search, machine: &mut RustMachine) {
    let one = Budget {
        time: None,
        executions: Some(1),
    };
    let mut go_on = |_: &Counts| ControlFlow::Continue(());
    explore(search, machine, None, (one, 1), &mut go_on);
}

struct Slicer<'a> {
    model: MemoryModel,
    budget: Budget,
    start: Instant,
    executions: u64,
    /// Executions that ended in any way.
    ended: u64,
    bug: Option<KnownBug>,
    first_bug: Option<u64>,
    origins: Origins,
    seen: &'a mut dyn FnMut(&Counts) -> ControlFlow<()>,
}

impl Observer<RustMachine> for Slicer<'_> {
    fn complete(&mut self, graph: &Graph) {
        self.origins.complete(graph);
    }

    fn alternative(&mut self, graph: &Graph, slot: Slot) {
        self.origins.alternative(graph, slot);
    }

    fn bug(&mut self, bug: &Bug, machine: &RustMachine) {
        self.first_bug.get_or_insert(self.ended + 1);
        let (failure, page) = report::describe(machine, bug, self.model);
        self.bug = Some(KnownBug {
            raw: bug.failure.clone(),
            failure,
            page,
        });
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        self.executions += 1;
        self.ended = counts.all();
        (self.seen)(counts)?;
        match self
            .budget
            .is_spent(self.executions, || self.start.elapsed())
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
