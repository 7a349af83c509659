//! Checking a program: from a property to a report.

use serde::{Deserialize, Serialize};

use super::automaton::{Automaton, TooLarge};
use super::formula::{Atom, Formula};
use super::graph::{Lasso, Move};
use super::program::{Halt, Program};
use super::{Find, find};
use crate::failure::{Failure, FailureKind};
use crate::ids::ThreadId;
use crate::report::{Bug, Counts, Ending, Observer, Report, StateCounts};
use crate::saved::StateMachine;
use crate::states::{self, StateStep, replay};

/// A property of executions that never end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Property {
    /// They satisfy a formula.
    Formula(Formula),
    /// They pass progress marks again and again, unless the program ends.
    Progress,
    /// Every thread gets on again and again, unless it has ended or waits for others to end. A
    /// thread gets on when it passes a progress mark; in a program without such marks, when it
    /// takes a step.
    NoStarvation {
        /// Whether the program has progress marks.
        marks: bool,
    },
}

impl Property {
    /// The propositions that labels of states have to tell.
    pub(super) fn labels(&self) -> Vec<Atom> {
        match self {
            Property::Formula(formula) => {
                let atoms = formula.atoms().into_iter();
                atoms.filter(Atom::is_of_state).collect()
            }
            Property::Progress => Vec::new(),
            Property::NoStarvation { .. } => (0..STARVING)
                .map(ThreadId)
                .flat_map(|thread| [Atom::Ended(thread), Atom::Joins(thread)])
                .collect(),
        }
    }

    /// The formula that says it; for starvation, of one thread.
    fn formula(&self, thread: ThreadId) -> Formula {
        let text = match self {
            Property::Formula(formula) => return formula.clone(),
            Property::Progress => "G F (any.progress || !any.moves)".to_owned(),
            Property::NoStarvation { marks } => {
                let gets_on = if *marks { "progress" } else { "moves" };
                format!("G F ({thread}.{gets_on} || {thread}.ended || {thread}.joins)")
            }
        };
        super::parse(&text).expect("it is a formula")
    }

    /// Whether it is a matter of the states alone: what holds in a state is known as soon as it is
    /// reached.
    fn is_of_states(&self) -> bool {
        match self {
            Property::Formula(formula) => formula.atoms().iter().all(Atom::is_of_state),
            Property::Progress | Property::NoStarvation { .. } => false,
        }
    }

    /// The failure of an execution that violates it.
    fn violated(&self, starving: ThreadId, end: End) -> String {
        let how = match end {
            End::Decided => "whatever comes next",
            End::Rest => "then nothing changes any more",
            End::Cycle => "then the cycle repeats for ever",
        };
        match self {
            Property::Formula(formula) => format!("{formula} does not hold: {how}"),
            Property::Progress => format!("no thread makes progress any more: {how}"),
            Property::NoStarvation { .. } => format!("{starving} never gets on again: {how}"),
        }
    }

    fn failure(&self) -> FailureKind {
        match self {
            Property::Formula(_) => FailureKind::LtlViolation,
            Property::Progress => FailureKind::NonProgress,
            Property::NoStarvation { .. } => FailureKind::Starvation,
        }
    }
}

/// How an execution goes on that violates a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// In any way: it is violated already.
    Decided,
    /// It stays where it is.
    Rest,
    /// In a cycle.
    Cycle,
}

/// The labels of a state have room for two bits for each of this many threads.
const STARVING: u32 = 32;

/// The property to check, and the settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The property that must hold.
    pub property: Property,
    /// Only for executions that are weakly fair.
    pub fair: bool,
    /// How many context switches the first pass goes. The second one knows no bound.
    pub switches: Option<u32>,
    /// Whether two threads that are about to access the same memory, not both atomically, are a bug.
    pub races: bool,
    /// Whether the search goes on after a bug.
    pub keep_going: bool,
}

/// The finding of a search, before it is reported.
struct Found {
    ending: Ending,
    /// An execution that violates the property, and the thread that starves in it.
    violation: Option<(Lasso, ThreadId)>,
    /// The ways to what is wrong.
    bugs: Vec<Vec<StateStep>>,
    counts: StateCounts,
    unrolled: bool,
}

/// Looks at every state of `machine`, sequentially consistent, until one is found with which
/// something is wrong, or an execution that violates the property.
pub fn search<M: StateMachine, O: Observer<M>>(
    machine: &mut M,
    settings: &Settings,
    observer: &mut O,
) -> Report {
    let mut watch = |counts: &StateCounts| observer.states(counts);
    let found = match Program::new(machine, settings, &mut watch) {
        Ok(program) => explore(program, settings),
        Err(why) => Found {
            ending: Ending::Refused(why),
            violation: None,
            bugs: Vec::new(),
            counts: StateCounts::default(),
            unrolled: false,
        },
    };
    let mut report = Report {
        ending: found.ending,
        counts: Counts::default(),
        bugs: Vec::new(),
        unrolled: found.unrolled,
        states: Some(found.counts),
    };
    let mut tell = |machine: &M, told: Result<Bug, String>| match told {
        Ok(bug) => {
            observer.bug(&bug, machine);
            report.bugs.push(bug);
        }
        Err(why) => report.ending = Ending::Nondeterministic(why.into()),
    };
    for steps in &found.bugs {
        let told = bug(machine, settings, steps);
        tell(machine, told);
    }
    if let Some((lasso, thread)) = &found.violation {
        let told = violation(machine, settings, lasso, *thread);
        tell(machine, told);
    }
    report
}

fn explore<M: StateMachine>(mut program: Program<'_, M>, settings: &Settings) -> Found {
    let (ending, violation) = match violated(&mut program, settings) {
        Ok(None) => (Ending::Complete, None),
        Ok(Some(found)) if settings.keep_going => match program.explore() {
            Ok(()) => (Ending::Complete, Some(found)),
            Err(halt) => (halt.into(), Some(found)),
        },
        Ok(found) => (Ending::FirstBug, found),
        Err(halt) => (halt.into(), None),
    };
    let bugs = program.wrong().to_vec();
    Found {
        ending,
        violation,
        bugs: bugs.iter().map(|&state| program.way_to(state)).collect(),
        counts: program.counts(),
        unrolled: program.unrolled(),
    }
}

/// A lasso that violates the property, and the thread that it is about. If there is none, every state has been
/// looked at.
fn violated<M: StateMachine>(
    program: &mut Program<'_, M>,
    settings: &Settings,
) -> Result<Option<(Lasso, ThreadId)>, Halt> {
    let how = Find {
        fair: settings.fair,
        complete_only: false,
        switches: settings.switches,
    };
    let labels = settings.property.labels();
    let each = matches!(settings.property, Property::NoStarvation { .. });
    let mut thread = ThreadId::MAIN;
    loop {
        let formula = settings.property.formula(thread);
        let automaton = Automaton::new(&formula, false);
        let automaton = automaton.map_err(|TooLarge(why)| Halt::Refused(why))?;
        if let Some(lasso) = find(program, &automaton, &labels, how)? {
            program.confirm(&lasso)?;
            return Ok(Some((lasso, thread)));
        }
        program.explore()?;
        thread = ThreadId(thread.0 + 1);
        let threads = program.states().machine().threads();
        if !each || thread.index() >= threads {
            return Ok(None);
        }
        if threads > STARVING as usize {
            let what = format!("starvation is looked for among {STARVING} threads at most");
            return Err(Halt::Refused(what));
        }
    }
}

/// Runs `steps` twice: the first run shows what is wrong at their end, the second one is watched.
fn bug<M: StateMachine>(
    machine: &mut M,
    settings: &Settings,
    steps: &[StateStep],
) -> Result<Bug, String> {
    let wrong = |machine: &M| {
        let again = "a failure was not seen again when its schedule was repeated";
        states::wrong(machine, settings.races).ok_or_else(|| again.to_owned())
    };
    replay(machine, steps)?;
    let (failure, _) = wrong(machine)?;
    machine.watch(&failure);
    let witness = replay(machine, steps)?;
    let (failure, waiting) = wrong(machine)?;
    Ok(Bug {
        failure,
        witness,
        waiting,
    })
}

fn violation<M: StateMachine>(
    machine: &mut M,
    settings: &Settings,
    lasso: &Lasso,
    starving: ThreadId,
) -> Result<Bug, String> {
    let mut all = steps(lasso.moves());
    let before = steps(lasso.prefix.iter()).len();
    let end = match lasso.decided {
        Some(moves) => {
            all.truncate(moves.saturating_sub(settings.property.is_of_states().into()));
            End::Decided
        }
        None if before == all.len() => End::Rest,
        None => End::Cycle,
    };
    let mut witness = replay(machine, &all)?;
    witness.cycle = (end != End::Decided).then_some(before as u32);
    let thread = match settings.property {
        Property::NoStarvation { .. } => starving,
        _ => all.last().map_or(ThreadId::MAIN, |step| step.thread),
    };
    Ok(Bug {
        failure: Failure {
            kind: settings.property.failure(),
            message: settings.property.violated(starving, end),
            thread,
            site: machine.site(thread),
            other: None,
        },
        witness,
        waiting: Vec::new(),
    })
}

/// The moves that threads make.
fn steps<'m>(moves: impl Iterator<Item = &'m Move>) -> Vec<StateStep> {
    let step = |by: &Move| {
        by.thread.map(|thread| StateStep {
            thread,
            choice: by.choice,
        })
    };
    moves.filter_map(step).collect()
}
