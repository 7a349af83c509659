//! From the steps of a witness to steps in words.

use std::collections::HashMap;

use selvedge_core::op::Rmw;
use selvedge_core::report::{Bug as RawBug, Waiting};
use selvedge_core::witness::{self, Origin, Witness};
use selvedge_core::words::{self, ObjectKind, State};
use selvedge_core::{Function, Location, Op, Other, Value};

use crate::{Datum, Place, ReadsFrom, Step, Wait};

/// Names of the variables and values of a program.
pub trait Names {
    /// The variable, object or thread that `op` works on.
    fn object(&self, op: &Op) -> Option<String>;

    /// A value of the memory that `op` accesses.
    fn contents(&self, op: &Op, value: Value) -> Datum;
}

/// Describes steps. It knows what kinds of objects their locations are.
pub struct Describer<'a, N> {
    /// The names of locations, functions and values.
    pub names: &'a N,
    /// The kinds of the locations.
    pub kinds: HashMap<Location, ObjectKind>,
}

impl<'a, N: Names> Describer<'a, N> {
    /// For the steps of `bug`.
    pub fn new(names: &'a N, bug: &RawBug) -> Describer<'a, N> {
        let pending = bug.waiting.iter().filter_map(|waiting| waiting.op.as_ref());
        let steps = bug.witness.steps.iter().map(|step| &step.op);
        Describer {
            names,
            kinds: words::kinds(steps.chain(pending)),
        }
    }

    /// The kind of object that `op` works on.
    pub fn kind(&self, op: &Op) -> ObjectKind {
        let kind = op.location().and_then(|location| self.kinds.get(&location));
        kind.copied().unwrap_or(ObjectKind::Memory)
    }

    /// A value that `op` reads or writes; `None` where the state of an object says nothing.
    pub fn datum(&self, op: &Op, value: Value) -> Option<Datum> {
        match self.kind(op) {
            ObjectKind::Memory => Some(self.names.contents(op, value)),
            on => words::state(on, value).map(|state| match state {
                State::Text(text) => Datum::Text(text),
                State::Count(count) => Datum::Unsigned(count),
            }),
        }
    }

    /// Step `n` of a schedule, counted from zero, which is taken at `place`.
    pub fn step(&self, n: usize, step: &witness::Step, place: Place) -> Step {
        let op = &step.op;
        let on = self.kind(op);
        let datum = |value| self.datum(op, value);
        Step {
            step: n as u32 + 1,
            thread: step.thread.0,
            switch: step.switch,
            place,
            operation: words::operation(op, on).to_owned(),
            object: self.names.object(op),
            read: step.read.filter(|_| !is_blind(op)).and_then(datum),
            wrote: step.wrote.and_then(datum),
            reads_from: step.origin.map(|origin| match origin {
                Origin::Initial => ReadsFrom::Initial,
                Origin::Step(step) => ReadsFrom::Step(step + 1),
            }),
            passes: step.newer.iter().map(|step| step + 1).collect(),
            order: words::order(op, on),
            plain: Vec::new(),
            stack: None,
        }
    }

    /// A thread that waits at `place`, at the end of `witness`.
    pub fn wait(&self, waiting: &Waiting, witness: &Witness, place: Place) -> Wait {
        let what = match &waiting.op {
            Some(op) => words::waits_for(op, self.kind(op), self.names.object(op).as_deref()),
            None => "for a value that no thread will write".to_owned(),
        };
        let lock = |op: &&Op| self.is_lock(op);
        let location = waiting.op.as_ref().filter(lock).and_then(Op::location);
        let since = location.zip(waiting.on).and_then(|(location, owner)| {
            let takes = |step: &witness::Step| {
                step.op.location() == Some(location) && step.thread == owner && step.wrote.is_some()
            };
            witness.steps.iter().rposition(takes)
        });
        Wait {
            thread: waiting.thread.0,
            place,
            what,
            on: waiting.on.map(|thread| thread.0),
            since: since.map(|step| step as u32 + 1),
        }
    }

    /// Whether `op` works on something that the thread which wrote it last holds.
    pub fn is_lock(&self, op: &Op) -> bool {
        matches!(
            self.kind(op),
            ObjectKind::Mutex | ObjectKind::ReadWriteLock | ObjectKind::Once
        )
    }
}

/// Whether the thread does not see what `op` reads: a store to a part of a location.
fn is_blind(op: &Op) -> bool {
    let function = match op {
        Op::Update { function, .. } => function,
        _ => return false,
    };
    matches!(
        function,
        Function::Memory {
            rmw: Rmw::Replace(_),
            ..
        }
    )
}

/// The number of the last step that the thread of `other` took before that; 0 if it had taken none. A step can be
/// several events.
pub fn last_step_before(other: &Other, steps: &[witness::Step]) -> Option<u32> {
    let events = other.events?;
    let thread = other.thread.index();
    let before = |step: &witness::Step| {
        let own = step.clock.get(thread);
        step.thread == other.thread && own.is_some_and(|&count| count <= events)
    };
    let last = steps.iter().rposition(before);
    Some(last.map_or(0, |last| last as u32 + 1))
}

/// A schedule in one line.
pub fn schedule(witness: &Witness) -> String {
    let steps = witness.steps.iter();
    let steps: Vec<_> = steps.map(|step| (step.thread.0, step.switch)).collect();
    match witness.cycle {
        Some(cycle) => words::lasso(&steps, cycle as usize),
        None => words::line(steps),
    }
}
