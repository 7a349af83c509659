//! Repair of a bug of weak memory: the smallest change of orders and fences after which the program
//! does not fail.
//!
//! The search goes back and forth between two questions. First: which smallest set of changes
//! forbids all failing executions known so far? To answer this, each of them is repeated with the
//! changed orders, until the model forbids one of its steps, or the program does not fail any more
//! (a data race whose accesses are ordered now). Second: does the changed program fail in another
//! way? This takes a search of its own; an execution that still fails joins the known ones. So the
//! result is a smallest change, not just one that suffices.

mod change;
mod example;
mod smallest;

pub use change::{Change, Way};

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::ids::Site;
use crate::machine::SpinLoops;
use crate::model::{Model, SequentialConsistency};
use crate::report::{self, Bug, Counts, Ending, Observer};
use crate::trust::{self, Settings};
use change::Changed;
use example::Example;
use smallest::Trials;

/// The repair of a bug by orders and fences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Repair {
    /// Nothing: the program fails under sequential consistency as well.
    Sequential,
    /// The same, and no order in the execution is weaker than sequential consistency anyway.
    Strong,
    /// Nothing that was tried.
    Unknown,
    /// These changes, of which none can be left out. Where there are many places to change, there
    /// may be a set with fewer.
    Changes {
        /// The changes.
        changes: Vec<Change>,
        /// Their effect.
        effect: Effect,
    },
}

/// The effect of a set of changes. All of them forbid the execution that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// The bug is gone: the changed program was explored to the end.
    Removes {
        /// How many executions it has.
        executions: u64,
        /// Whether other bugs remain that no change of this kind removes.
        others: bool,
    },
    /// None of the executions that were looked at fails, but these are not all.
    Unconfirmed,
    /// Other executions still fail.
    Remains,
}

/// Looks for the smallest change that removes `bug`, found in `machine` under `C`.
///
/// Only accesses and fences that `own` accepts are changed. `go_on` is asked before each run of
/// the program; what is known by the time it says no is the answer.
pub fn repair<C: Model, M: SpinLoops>(
    machine: &mut M,
    bug: &Bug,
    own: &dyn Fn(Site) -> bool,
    go_on: &mut dyn FnMut() -> bool,
) -> Repair {
    let Some(first) = Example::new(machine, &[], bug) else {
        return Repair::Unknown;
    };
    if first.fails::<SequentialConsistency, _>(machine, &[]) {
        return match first.has_weak_orders() {
            true => Repair::Sequential,
            false => Repair::Strong,
        };
    }
    let mut examples = vec![first];
    let mut others: Vec<Bug> = Vec::new();
    let mut tried: Option<Vec<Change>> = None;
    let mut at_least = 1;
    loop {
        let candidates = smallest::candidates(&examples, own);
        let mut trials = Trials {
            machine,
            examples: &examples,
            go_on,
            at_least,
        };
        let smallest = trials.smallest::<C>(&candidates);
        at_least = trials.at_least;
        let Some(changes) = smallest else {
            return match tried {
                None if is_sequential(machine, bug, go_on) => Repair::Sequential,
                None => Repair::Unknown,
                Some(changes) => Repair::Changes {
                    changes,
                    effect: Effect::Remains,
                },
            };
        };
        match confirm::<C, M>(machine, &changes, &others, go_on) {
            Confirmed::Effect(effect) => return Repair::Changes { changes, effect },
            Confirmed::Fails(found) => {
                let Some(example) = Example::new(machine, &changes, &found) else {
                    let effect = Effect::Remains;
                    return Repair::Changes { changes, effect };
                };
                if !example.fails::<SequentialConsistency, _>(machine, &[]) {
                    examples.push(example);
                    tried = Some(changes);
                } else if report::same_bug(&found.failure, &bug.failure) {
                    return Repair::Sequential;
                } else {
                    others.push(*found);
                }
            }
        }
    }
}

/// Whether `bug` is found under sequential consistency.
fn is_sequential<M: SpinLoops>(
    machine: &mut M,
    bug: &Bug,
    go_on: &mut dyn FnMut() -> bool,
) -> bool {
    match confirm::<SequentialConsistency, M>(machine, &[], &[], go_on) {
        Confirmed::Fails(found) => report::same_bug(&found.failure, &bug.failure),
        Confirmed::Effect(_) => false,
    }
}

enum Confirmed {
    Effect(Effect),
    Fails(Box<Bug>),
}

/// Explores the changed program, up to a bug that is not among `others`.
fn confirm<C: Model, M: SpinLoops>(
    machine: &mut M,
    changes: &[Change],
    others: &[Bug],
    go_on: &mut dyn FnMut() -> bool,
) -> Confirmed {
    let mut observer = Confirm {
        others,
        found: None,
        go_on,
    };
    let settings = Settings {
        keep_going: !others.is_empty(),
        preemptions: None,
    };
    let mut machine = Changed::new(machine, changes);
    let report = trust::search::<C, _>(&mut machine, settings, &mut observer);
    match (observer.found, report.ending) {
        (Some(bug), _) => Confirmed::Fails(bug),
        (None, Ending::Complete) => Confirmed::Effect(Effect::Removes {
            executions: report.counts.executions,
            others: !others.is_empty(),
        }),
        (None, _) => Confirmed::Effect(Effect::Unconfirmed),
    }
}

struct Confirm<'a> {
    others: &'a [Bug],
    found: Option<Box<Bug>>,
    go_on: &'a mut dyn FnMut() -> bool,
}

impl<M> Observer<M> for Confirm<'_> {
    fn bug(&mut self, bug: &Bug, _machine: &M) {
        let known = |other: &Bug| report::same_bug(&other.failure, &bug.failure);
        if self.found.is_none() && !self.others.iter().any(known) {
            self.found = Some(Box::new(bug.clone()));
        }
    }

    fn progress(&mut self, _counts: &Counts) -> ControlFlow<()> {
        if self.found.is_some() || !(self.go_on)() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
