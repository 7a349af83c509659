//! Steps as the interleaving engines see them: what they touch, and which of them commute.

use crate::ids::{Location, ThreadId};
use crate::op::{Effect, Op, Value};

/// The memory or object that a step touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing that others can see: fences, choices.
    Nothing,
    /// Memory or an object.
    Location(Location),
    /// The beginning of a thread.
    Create(ThreadId),
    /// The end of a thread.
    Join(ThreadId),
    /// The end of every other thread.
    JoinAll,
}

/// A step of a thread: enough to tell whether it commutes with another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) thread: ThreadId,
    /// The number of the alternative that is taken.
    pub(super) choice: u32,
    pub(super) target: Target,
    /// Whether it writes its location. For a compare-exchange or an object that depends on the
    /// value found, so the same operation may do so in one place and not in another.
    pub(super) writes: bool,
}

impl Act {
    /// Whether the order of the two matters.
    pub(super) fn conflicts(&self, other: &Act) -> bool {
        if self.thread == other.thread {
            return true;
        }
        match (self.target, other.target) {
            (Target::Location(one), Target::Location(another)) => {
                one == another && (self.writes || other.writes)
            }
            (Target::Create(child), Target::Join(joined))
            | (Target::Join(joined), Target::Create(child)) => child == joined,
            _ => self.waits_for(other.thread) || other.waits_for(self.thread),
        }
    }

    fn waits_for(&self, thread: ThreadId) -> bool {
        match self.target {
            Target::Create(other) | Target::Join(other) => other == thread,
            Target::JoinAll => true,
            Target::Nothing | Target::Location(_) => false,
        }
    }

    /// The location it touches, if it touches one.
    pub(super) fn location(&self) -> Option<Location> {
        match self.target {
            Target::Location(location) => Some(location),
            _ => None,
        }
    }
}

/// `next(p)`: what a thread is about to do in the present state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Next {
    pub(super) op: Op,
    /// The step, its kind as the present state makes it. A step that has to wait counts as writing.
    pub(super) act: Act,
    /// How many ways it has to go on; none if it has to wait.
    pub(super) alternatives: u32,
    /// The value of its location.
    pub(super) value: Value,
}

impl Next {
    /// `op` of `thread` where its location holds `value`; `ready` tells whether a join may go on.
    pub(super) fn new(thread: ThreadId, op: Op, value: Value, ready: bool) -> Next {
        let (writes, alternatives) = match op {
            Op::Choose { alternatives } => (false, alternatives),
            Op::Join { .. } | Op::JoinAll => (false, u32::from(ready)),
            Op::Update { function, .. } => match function.apply(value) {
                Effect::Write(_) => (true, 1),
                Effect::Keep => (false, 1),
                Effect::Block => (true, 0),
                Effect::Choose(alternatives) => (true, alternatives),
            },
            Op::Store { .. } => (true, 1),
            Op::Load { .. } | Op::Fence { .. } | Op::Create { .. } => (false, 1),
        };
        let target = match op {
            Op::Load { at, .. } | Op::Store { at, .. } | Op::Update { at, .. } => {
                Target::Location(at)
            }
            Op::Fence { .. } | Op::Choose { .. } => Target::Nothing,
            Op::Create { child } => Target::Create(child),
            Op::Join { child } => Target::Join(child),
            Op::JoinAll => Target::JoinAll,
        };
        let act = Act {
            thread,
            choice: 0,
            target,
            writes,
        };
        Next {
            op,
            act,
            alternatives,
            value,
        }
    }

    pub(super) fn enabled(&self) -> bool {
        self.alternatives > 0
    }

    /// Whether it is an operation that has to wait in some states.
    pub(super) fn may_wait(&self) -> bool {
        self.op.may_wait()
    }

    /// Whether it waits for another value of its location (and not for a thread).
    pub(super) fn waits_for_value(&self) -> bool {
        self.alternatives == 0 && self.act.location().is_some()
    }

    /// How many ways it would have to go on where its location holds `value`.
    pub(super) fn alternatives_at(&self, value: Value) -> u32 {
        match self.op {
            Op::Update { function, .. } => match function.apply(value) {
                Effect::Choose(alternatives) => alternatives,
                Effect::Write(_) | Effect::Keep => 1,
                Effect::Block => 0,
            },
            _ => self.alternatives,
        }
    }

    /// The step as it would be where its location holds `value`; `None` if it had to wait there.
    pub(super) fn at_value(&self, value: Value) -> Option<Act> {
        let writes = match self.op {
            Op::Update { function, .. } => match function.apply(value) {
                Effect::Write(_) | Effect::Choose(_) => true,
                Effect::Keep => false,
                Effect::Block => return None,
            },
            _ => self.act.writes,
        };
        Some(Act { writes, ..self.act })
    }
}
