//! Exploring work units for the command.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use selvedge_core::Portable as _;
use selvedge_core::graph::{Graph, Slot};
use selvedge_core::report::{Bug as RawBug, Counts, Observer};
use selvedge_core::settings::Settings;
use selvedge_core::trust::{self, Answer, Unit};
use selvedge_core::with_model;
use selvedge_page::Origins;
use selvedge_runtime::peers::processor_time;

use super::estimate;
use super::explore::{Exploration, hot_loop, tell_of_long};
use super::journal::Watched;
use super::lines;
use super::measure::memory;
use super::orders::{Budget, Noticed, Order, Piece, Sliced};
use super::protocol::{Bound, FoundBug, Reply, Rerun, Sampling};
use crate::args::Model;
use crate::describe;
use crate::explorer::Explorer;

impl<'a> Exploration<'a> {
    /// Explores units as long as there are orders.
    pub(super) fn serve(
        &self,
        machine: &mut Watched<'a>,
        orders: &mut dyn FnMut() -> Option<Order>,
    ) {
        tell_of_long(self.binary, self.reply, machine);
        let watched = self.watch_lines(machine);
        while let Some(order) = orders() {
            let mut sliced = self.slice(machine, order);
            sliced.noticed.unwatched = !watched;
            if watched {
                sliced.noticed.reached = lines::reached(machine.inner());
            }
            (self.reply)(Reply::Sliced(Box::new(sliced)));
        }
    }

    fn slice(&self, machine: &mut Watched<'a>, order: Order) -> Sliced {
        let start = processor_time();
        if let Rerun::Run(from) = order.rerun {
            self.journal(machine, from);
        }
        machine.learn(&order.learned);
        let forecast = match order.forecast {
            Duration::ZERO => None,
            time => {
                let (model, settings) = self.settings();
                let preemptions = settings.preemptions;
                let sampling = Sampling {
                    model,
                    preemptions,
                    time,
                };
                estimate::forecast(machine, self.counters, &sampling)
            }
        };
        let mut slicer = Slicer {
            exploration: self,
            budget: order.budget,
            start: Instant::now(),
            executions: 0,
            ended: 0,
            first_bug: None,
            beyond: None,
            pieces: order.pieces,
            bugs: Vec::new(),
            origins: self.origins(machine),
        };
        let answer = match order.unit.as_deref().map(postcard::from_bytes).transpose() {
            Ok(unit) => self.explore(machine, (unit, order.known), &mut slicer),
            Err(error) => Answer {
                report: selvedge_core::report::Report::refused(format!(
                    "a work unit cannot be read: {error}"
                )),
                rest: None,
                misjudged: false,
            },
        };
        let origins = self.lines(&slicer.origins, machine);
        let overlooked = machine.inner().overlooked();
        let report = answer.report;
        Sliced {
            ending: describe::ending(self.binary, machine.inner(), report.ending),
            counts: report.counts,
            bugs: slicer.bugs,
            first_bug: slicer.first_bug,
            beyond: slicer.beyond,
            origins,
            unrolled: report.unrolled,
            rest: pieces(answer.rest, slicer.pieces),
            relied: machine.relied_on(),
            learned: machine.learned(),
            misjudged: answer.misjudged,
            noticed: Noticed {
                hot_loop: hot_loop(self.binary, machine.inner()),
                weak_exchanges: overlooked.weak_exchanges,
                freed_pointers: overlooked.freed_pointers,
                status: overlooked.status,
                threads: overlooked.threads,
                mixed: overlooked.mixed,
                memory: memory("VmHWM:"),
                ..Noticed::default()
            },
            processor: processor_time() - start,
            forecast,
        }
    }

    /// How graphs are searched.
    fn settings(&self) -> (Model, Settings) {
        let Explorer::Trust(model) = self.search.explorer else {
            unreachable!("only searches over graphs are sliced");
        };
        let settings = Settings {
            keep_going: self.search.keep_going,
            preemptions: match self.search.bound {
                Bound::AtMost(bound) => Some(bound),
                Bound::None | Bound::Iterative => None,
            },
        };
        (model, settings)
    }

    fn explore(
        &self,
        machine: &mut Watched<'a>,
        work: (Option<Unit>, Vec<selvedge_core::Failure>),
        slicer: &mut Slicer<'_>,
    ) -> Answer {
        let (model, settings) = self.settings();
        with_model!(model, C => trust::slice::<C, _>(machine, settings, work, slicer))
    }
}

/// Divides what is left into at most this many units, those with the oldest choices last.
fn pieces(rest: Option<Unit>, most: u64) -> Vec<Piece> {
    let piece = |unit: &Unit| Piece {
        unit: postcard::to_stdvec(unit).expect("a unit can be serialised"),
        share: unit.share(),
    };
    let units = rest.map_or_else(Vec::new, |rest| rest.pieces(most));
    units.iter().map(piece).collect()
}

/// Counts executions, describes bugs, and ends a slice.
struct Slicer<'a> {
    exploration: &'a Exploration<'a>,
    budget: Budget,
    start: Instant,
    executions: u64,
    /// How many executions ended in any way.
    ended: u64,
    first_bug: Option<u64>,
    /// A bug beyond the bound.
    beyond: Option<FoundBug>,
    /// Into how many units the rest is to be divided.
    pieces: u64,
    bugs: Vec<FoundBug>,
    /// Where executions come from.
    origins: Origins,
}

impl Slicer<'_> {
    fn describe(&self, bug: &RawBug, machine: &Watched<'_>) -> FoundBug {
        let binary = self.exploration.binary;
        let calls = describe::Calls::default();
        FoundBug {
            described: describe::bug(binary, machine.inner(), bug, &calls),
            raw: bug.clone(),
        }
    }
}

impl Observer<Watched<'_>> for Slicer<'_> {
    fn complete(&mut self, graph: &Graph) {
        self.origins.complete(graph);
    }

    fn alternative(&mut self, graph: &Graph, slot: Slot) {
        self.origins.alternative(graph, slot);
    }

    fn bug(&mut self, bug: &RawBug, machine: &Watched<'_>) {
        self.first_bug.get_or_insert(self.ended + 1);
        let found = self.describe(bug, machine);
        self.bugs.push(found);
    }

    fn bug_beyond(&mut self, bug: &RawBug, machine: &Watched<'_>) {
        self.beyond = Some(self.describe(bug, machine));
    }

    fn progress(&mut self, counts: &Counts) -> ControlFlow<()> {
        let counters = self.exploration.counters;
        let executions = counters.executions();
        executions.store(counts.executions, Ordering::Relaxed);
        counters.blocked().store(counts.blocked, Ordering::Relaxed);
        self.executions += 1;
        self.ended = counts.all();
        let stop = counters.stop().load(Ordering::Relaxed);
        if stop != 0 {
            self.pieces = stop;
            return ControlFlow::Break(());
        }
        if self
            .budget
            .is_spent(self.executions, || self.start.elapsed())
        {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
