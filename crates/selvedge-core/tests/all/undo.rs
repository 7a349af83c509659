//! Machines that undo steps against machines that are reset: the same executions in the same order,
//! the same reports.

use std::ops::ControlFlow;

use selvedge_core::dpor::{self, Engine};
use selvedge_core::graph::Graph;
use selvedge_core::irs;
use selvedge_core::model::{Model, Rc11, ReleaseAcquire, SequentialConsistency, TotalStoreOrder};
use selvedge_core::tracer::{self, SaturatedRa, SaturatedSc};
use selvedge_core::trust::{self, Counts, Observer, Report, Settings};
use selvedge_testkit::{
    Execution, Flavour, Program, ScriptMachine, random_program, with_random_orders,
};

use crate::common::{FLAVOURS, number};

/// How many programs of each flavour.
const PROGRAMS: u64 = 60;
/// A search ends after this many executions.
const LIMIT: u64 = 300;

/// The results that a search reports, in order.
#[derive(Default, PartialEq, Eq)]
struct Told {
    executions: Vec<(u8, Execution)>,
    ended: u64,
    report: String,
}

impl<M> Observer<M> for Told {
    fn complete(&mut self, graph: &Graph) {
        self.executions.push((0, Execution::of(graph)));
    }

    fn over_bound(&mut self, graph: &Graph) {
        self.executions.push((1, Execution::of(graph)));
    }

    fn stuck(&mut self, graph: &Graph) {
        self.executions.push((2, Execution::of(graph)));
    }

    fn progress(&mut self, _: &Counts) -> ControlFlow<()> {
        self.ended += 1;
        match self.ended {
            LIMIT => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Runs `search` on a machine that is reset, on one that undoes everything, and on one that cannot
/// undo each third step.
fn compare(program: &Program, what: &str, search: impl Fn(ScriptMachine, &mut Told) -> String) {
    let told = |machine: ScriptMachine| {
        let mut told = Told::default();
        told.report = search(machine, &mut told);
        told
    };
    let expected = told(ScriptMachine::new(program.clone()));
    for barrier in [0, 3] {
        let undone = told(ScriptMachine::with_undo(program.clone(), barrier));
        assert_eq!(
            undone.report, expected.report,
            "{what}, barrier {barrier}: {program:?}"
        );
        assert!(
            undone == expected,
            "{what}, barrier {barrier}: other executions: {program:?}"
        );
    }
}

fn words(report: &Report) -> String {
    format!("{report:?}")
}

fn compare_trust<C: Model>(program: &Program) {
    for preemptions in [None, Some(0), Some(1)] {
        for keep_going in [false, true] {
            let settings = Settings {
                keep_going,
                preemptions,
            };
            let model = std::any::type_name::<C>();
            let what = format!("trust, {model}, {settings:?}");
            compare(program, &what, |mut machine, told| {
                words(&trust::search::<C, _>(&mut machine, settings, told))
            });
        }
    }
}

fn programs(flavour: Flavour) -> impl Iterator<Item = (u64, Program)> {
    let count = number("SELVEDGE_UNDO").unwrap_or(PROGRAMS);
    (0..count).map(move |seed| (seed, random_program(seed, flavour)))
}

#[test]
fn graph_searches_tell_the_same_with_undo_under_every_model_and_bound() {
    for flavour in FLAVOURS {
        for (seed, program) in programs(flavour) {
            compare_trust::<SequentialConsistency>(&program);
            let program = with_random_orders(&program, seed);
            compare_trust::<TotalStoreOrder>(&program);
            compare_trust::<ReleaseAcquire>(&program);
            compare_trust::<Rc11>(&program);
        }
    }
}

#[test]
fn reads_from_searches_tell_the_same_with_undo() {
    for flavour in FLAVOURS {
        for (_, program) in programs(flavour) {
            compare(&program, "tracer, sc", |mut machine, told| {
                words(&tracer::search::<SaturatedSc, _>(&mut machine, true, told))
            });
            compare(&program, "tracer, ra", |mut machine, told| {
                words(&tracer::search::<SaturatedRa, _>(&mut machine, true, told))
            });
        }
    }
}

#[test]
fn interleaving_engines_tell_the_same_with_undo() {
    let engines = [
        Engine::SourceDpor,
        Engine::OptimalDpor,
        Engine::Bpor,
        Engine::LazyBpor,
    ];
    for flavour in FLAVOURS {
        for (_, program) in programs(flavour) {
            for engine in engines {
                let settings = Settings {
                    keep_going: true,
                    preemptions: engine.bounded().then_some(1),
                };
                compare(&program, engine.name(), |mut machine, told| {
                    let searched = dpor::search(&mut machine, engine, settings, told);
                    format!("{searched:?}")
                });
            }
        }
    }
}

/// Watches nothing.
struct Unwatched;

impl irs::Watcher<ScriptMachine> for Unwatched {}

#[test]
fn proven_schedules_are_the_same_with_undo() {
    for flavour in [Flavour::Memory, Flavour::Mutexes, Flavour::Loops] {
        for (_, program) in programs(flavour).take(8) {
            compare(&program, "irs", |mut machine, _| {
                let settings = irs::Settings::default();
                let proven = irs::verify(&mut machine, settings, None, &mut Unwatched);
                format!("{proven:?}")
            });
        }
    }
}
