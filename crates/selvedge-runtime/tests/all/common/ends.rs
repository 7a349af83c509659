//! Runs every interleaving of a program and says how each of them ended.

use std::collections::BTreeSet;

use selvedge_core::{Failure, FailureKind, Machine, Pending, Stop};
use selvedge_runtime::{NativeMachine, Plain, Settings};

use super::driver::{Driver, every_interleaving, threads};
use super::{Build, Program};

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// Every thread finished.
    Complete,
    /// A thread failed.
    Failed(FailureKind),
    /// A thread does something that is not modelled.
    Refused,
    /// A thread made a pure iteration.
    Spinning,
    /// A thread ran past the bound on loops.
    Unrolled,
    /// A thread waits for ever.
    Stuck,
}

/// How the execution that the machine just finished ended.
pub fn end(machine: &NativeMachine) -> End {
    let stops: Vec<_> = threads(machine)
        .map(|thread| machine.pending(thread))
        .collect();
    let any = |stop: fn(&Stop) -> bool| {
        stops
            .iter()
            .any(|pending| matches!(pending, Pending::Stopped(s) if stop(s)))
    };
    if any(|stop| *stop == Stop::Failed) {
        End::Failed(machine.failure().expect("a failure").kind)
    } else if any(|stop| *stop == Stop::Refused) {
        End::Refused
    } else if any(|stop| matches!(stop, Stop::Spinning { .. })) {
        End::Spinning
    } else if any(|stop| *stop == Stop::Unrolled) {
        End::Unrolled
    } else if stops
        .iter()
        .any(|pending| matches!(pending, Pending::Op(_)))
    {
        End::Stuck
    } else {
        End::Complete
    }
}

/// Settings under which plain accesses are events.
pub fn plain_sc() -> Settings {
    Settings {
        plain: Plain::Sc,
        ..Settings::default()
    }
}

/// How the interleavings of `source` end.
pub fn ends(build: Build, source: &str, settings: Settings) -> BTreeSet<End> {
    let program = Program::build(build, source);
    let mut machine = program.load(settings);
    let mut all = BTreeSet::new();
    every_interleaving(&mut machine, |machine, _| {
        all.insert(end(machine));
    });
    all
}

/// The failure of the first schedule.
pub fn failure(build: Build, source: &str, settings: Settings) -> Failure {
    let program = Program::build(build, source);
    let mut machine = program.load(settings);
    Driver::first(&mut machine);
    machine
        .failure()
        .unwrap_or_else(|| panic!("no failure but {:?}", end(&machine)))
}

/// The refusal of the first schedule.
pub fn refusal(build: Build, source: &str, settings: Settings) -> String {
    let program = Program::build(build, source);
    let mut machine = program.load(settings);
    Driver::first(&mut machine);
    machine
        .refusal()
        .unwrap_or_else(|| panic!("no refusal but {:?}", end(&machine)))
}
