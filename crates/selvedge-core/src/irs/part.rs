//! Parts of a step that other processes explore.
//!
//! A part is a work unit of the step's search with everything that the search depends on. What a helper found is
//! put together with the rest as if one process had explored it. A helper does not report bugs: a step in which
//! one is found is explored again by one process, so that the bug that ends it does not depend on the helpers.

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::attempt::explore_unit;
use super::constrained::Constrained;
use super::demands::Demands;
use super::log::{EventPlace, Log};
use super::plan::{Plan, Reversed};
use super::relax::{Watcher, Work};
use super::reversal::Pair;
use crate::ids::{Site, ThreadId};
use crate::machine::{Fact, Machine, Portable};
use crate::report::{Bug, Counts, Ending};
use crate::trust::Unit;

/// Something to explore.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    pub(super) inputs: Vec<u32>,
    pub(super) counted: FxHashSet<Site>,
    pub(super) places: Vec<Option<EventPlace>>,
    pub(super) demands: Demands,
    pub(super) reversed: Option<Reversed>,
    pub(super) unit: Unit,
    pub(super) learned: Vec<(Fact, Fact)>,
    /// No more executions than that.
    pub(super) limit: Option<u64>,
}

/// The result of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Explored {
    pub(super) counts: Counts,
    pub(super) unrolled: bool,
    pub(super) traces: u64,
    pub(super) log: Log,
    pub(super) rest: Option<Unit>,
    pub(super) relied: Vec<Fact>,
    pub(super) learned: Vec<(Fact, Fact)>,
    pub(super) misjudged: bool,
    /// How the helper numbers threads.
    pub(super) spawned: Vec<(ThreadId, u32)>,
    /// Whether there was no bug, and nothing else that ends a search.
    pub(super) usable: bool,
}

/// Tells nobody, and stops when it is time to.
struct Helper<'a>(&'a mut dyn FnMut() -> bool);

impl<M: Machine> Watcher<M> for Helper<'_> {
    fn bug(&mut self, _: &Bug, _: &M) {}

    fn pauses(&mut self) -> bool {
        (self.0)()
    }
}

/// Explores a part until it is done, or `enough` says so.
pub fn help<M: Portable>(
    machine: &mut M,
    part: Part,
    enough: &mut dyn FnMut() -> bool,
) -> Explored {
    let plan = Plan {
        inputs: &part.inputs,
        counted: &part.counted,
        places: &part.places,
        demands: &part.demands,
        reversed: part.reversed,
    };
    let pair = Pair::default();
    let mut machine = Constrained::new(machine, plan, &pair);
    machine.learn(&part.learned);
    let work = Work {
        before: 0,
        executions: 0,
        reversed: part.reversed,
        pair: &pair,
        places: &part.places,
        inputs: &part.inputs,
        limit: part.limit,
        tells: false,
    };
    let unit = Some(part.unit);
    let slice = explore_unit(
        &mut machine,
        &mut Helper(enough),
        &mut Vec::new(),
        work,
        unit,
    );
    let mut log = std::mem::take(&mut machine.log);
    log.add_histories(&machine.histories);
    let report = slice.answer.report;
    Explored {
        usable: matches!(report.ending, Ending::Complete | Ending::Stopped),
        counts: report.counts,
        unrolled: report.unrolled,
        traces: slice.traces,
        log,
        rest: slice.answer.rest,
        relied: machine.relied_on(),
        learned: machine.learned(),
        misjudged: slice.answer.misjudged,
        spawned: machine.spawned(),
    }
}
