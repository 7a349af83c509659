//! Operations in the words of the source.

use std::collections::HashMap;

use crate::ids::{Location, ThreadId};
use crate::objects::{self, ObjectFunction};
use crate::op::{Function, MemoryOrder, Op, Rmw, Value};
use crate::witness::Switch;

/// The kind of object at a location, told by the operations on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Plain or atomic memory.
    Memory,
    /// A mutex or a spin lock.
    Mutex,
    /// A read-write lock.
    ReadWriteLock,
    /// A semaphore.
    Semaphore,
    /// A condition variable.
    Condition,
    /// A barrier.
    Barrier,
    /// A routine that is run once.
    Once,
    /// The guard of a pipe, a file or another modelled resource.
    Guard,
}

/// The state of a synchronisation object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// In words.
    Text(String),
    /// A number says it all.
    Count(u64),
}

/// The kinds of all locations that `ops` touch.
pub fn kinds<'a>(ops: impl IntoIterator<Item = &'a Op>) -> HashMap<Location, ObjectKind> {
    let mut kinds = HashMap::new();
    for op in ops {
        if let Op::Update {
            at,
            function: Function::Object(function),
            ..
        } = op
        {
            kinds.extend(kind(*function).map(|kind| (*at, kind)));
        }
    }
    kinds
}

/// The kind of object that `function` is a step on; `None` for the end of any object.
pub(crate) fn kind(function: ObjectFunction) -> Option<ObjectKind> {
    use ObjectFunction as F;
    let kind = match function {
        F::MutexLock { .. } | F::MutexTryLock { .. } => ObjectKind::Mutex,
        F::ReadLock | F::ReadTryLock | F::ReadUnlock | F::WriteLock | F::WriteTryLock => {
            ObjectKind::ReadWriteLock
        }
        F::SemaphoreWait | F::SemaphoreTryWait | F::SemaphorePost => ObjectKind::Semaphore,
        F::BarrierArrive { .. } | F::BarrierAwait { .. } => ObjectKind::Barrier,
        F::OnceBegin => ObjectKind::Once,
        F::LockWhen { .. } => ObjectKind::Guard,
        F::ConditionEnqueue
        | F::ConditionAwait { .. }
        | F::ConditionLeave { .. }
        | F::ConditionSignal
        | F::ConditionBroadcast => ObjectKind::Condition,
        F::Destroy => return None,
    };
    Some(kind)
}

/// The name of an operation on a location of the given kind.
pub fn operation(op: &Op, on: ObjectKind) -> &'static str {
    use ObjectFunction as F;
    match op {
        Op::Load { .. } => "load",
        Op::Store { value, .. } => match on {
            ObjectKind::Memory => "store",
            ObjectKind::Mutex | ObjectKind::ReadWriteLock if *value == objects::FREE => "unlock",
            ObjectKind::Once if *value == objects::DONE => "once-end",
            ObjectKind::Guard => "end-use",
            _ => "initialise",
        },
        Op::Update {
            function: Function::Memory { rmw, .. },
            ..
        } => match rmw {
            Rmw::Exchange(_) => "exchange",
            Rmw::Replace(_) => "store",
            Rmw::Add(_) => "fetch-add",
            Rmw::Sub(_) => "fetch-sub",
            Rmw::And(_) => "fetch-and",
            Rmw::Or(_) => "fetch-or",
            Rmw::Xor(_) => "fetch-xor",
            Rmw::Nand(_) => "fetch-nand",
            Rmw::Max(_) | Rmw::UMax(_) => "fetch-max",
            Rmw::Min(_) | Rmw::UMin(_) => "fetch-min",
            Rmw::CompareExchange { .. } => "compare-exchange",
        },
        Op::Update {
            function: Function::Object(function),
            ..
        } => match function {
            F::MutexLock { .. } => "lock",
            F::MutexTryLock { .. } => "try-lock",
            F::ReadLock => "read-lock",
            F::ReadTryLock => "try-read-lock",
            F::ReadUnlock => "unlock",
            F::WriteLock => "write-lock",
            F::WriteTryLock => "try-write-lock",
            F::SemaphoreWait => "wait",
            F::SemaphoreTryWait => "try-wait",
            F::SemaphorePost => "post",
            F::ConditionEnqueue => "begin-wait",
            F::ConditionAwait { .. } => "wake-up",
            F::ConditionLeave { .. } => "end-wait",
            F::ConditionSignal => "signal",
            F::ConditionBroadcast => "broadcast",
            F::BarrierArrive { .. } => "arrive",
            F::BarrierAwait { .. } => "pass",
            F::OnceBegin => "once",
            F::LockWhen { .. } => "use",
            F::Destroy => "destroy",
        },
        Op::Fence { .. } => "fence",
        Op::Create { .. } => "create",
        Op::Join { .. } => "join",
        Op::JoinAll => "join-all",
        Op::Choose { .. } => "choose",
    }
}

/// The event that a thread waits for if it cannot perform `op`.
pub fn waits_for(op: &Op, on: ObjectKind, object: Option<&str>) -> String {
    use ObjectFunction as F;
    let object = object.unwrap_or("something");
    match op {
        Op::Join { child } => format!("for {child} to end"),
        Op::JoinAll => "for all other threads to end".to_owned(),
        Op::Update {
            function: Function::Object(function),
            ..
        } => match function {
            F::MutexLock { .. } => format!("to lock {object}"),
            F::ReadLock => format!("to lock {object} for reading"),
            F::WriteLock => format!("to lock {object} for writing"),
            F::SemaphoreWait => format!("for the semaphore {object} to be posted"),
            F::ConditionAwait { .. } => format!("for the condition {object} to be signalled"),
            F::BarrierAwait { .. } => format!("for others to arrive at the barrier {object}"),
            F::OnceBegin => format!("for the routine of {object} to end"),
            F::LockWhen { bits: 0, .. } => format!("to use {object}"),
            F::LockWhen { room: 0, .. } => format!("for data in {object}"),
            F::LockWhen { .. } => format!("for room in {object}"),
            _ => format!("for {object}"),
        },
        other => format!("to {} {object}", operation(other, on)),
    }
}

/// The state of a synchronisation object for people; `None` where it says nothing.
pub fn state(on: ObjectKind, value: Value) -> Option<State> {
    let text = |text: String| Some(State::Text(text));
    match on {
        ObjectKind::Memory => None,
        ObjectKind::Mutex => match value {
            objects::FREE => text("free".to_owned()),
            owner => text(format!(
                "held by {}",
                ThreadId((owner as u32).wrapping_sub(1))
            )),
        },
        ObjectKind::ReadWriteLock => match value {
            objects::FREE => text("free".to_owned()),
            objects::WRITER.. => text("held for writing".to_owned()),
            readers => text(format!("{readers} readers")),
        },
        ObjectKind::Semaphore => Some(State::Count(value as u64)),
        ObjectKind::Condition => text(format!(
            "{} waiting, {} woken",
            (value as u64).count_ones(),
            ((value >> objects::CONDITION_SLOTS) as u64).count_ones()
        )),
        ObjectKind::Barrier => text(format!("{} arrived", value as u64)),
        ObjectKind::Guard if value >= objects::TAKEN => text("in use".to_owned()),
        ObjectKind::Guard => None,
        ObjectKind::Once => text(
            match value {
                objects::FREE => "not begun",
                objects::DONE => "done",
                _ => "running",
            }
            .to_owned(),
        ),
    }
}

/// The order as the source writes it; plain accesses have none.
pub fn order(op: &Op, on: ObjectKind) -> Option<String> {
    let order = match op {
        Op::Load { order, .. } | Op::Store { order, .. } | Op::Fence { order } => order,
        Op::Update { order, .. } => order,
        _ => return None,
    };
    if on != ObjectKind::Memory {
        return None;
    }
    let name = match order {
        MemoryOrder::Plain => return None,
        MemoryOrder::Relaxed => "relaxed",
        MemoryOrder::Acquire => "acquire",
        MemoryOrder::Release => "release",
        MemoryOrder::AcqRel => "acq_rel",
        MemoryOrder::SeqCst => "seq_cst",
    };
    Some(name.to_owned())
}

/// A step in a few words: `store x = 1`, `fetch-add n: 2 → 3`, `lock m`. The operation is named as
/// by [`operation`], and the values are those read and written.
pub fn phrase(
    operation: &str,
    object: Option<&str>,
    read: Option<String>,
    wrote: Option<String>,
) -> String {
    let mut words = operation.to_owned();
    if let Some(object) = object {
        words.push(' ');
        words.push_str(object);
    }
    let values = match (operation, &read, &wrote) {
        (
            "lock" | "unlock" | "read-lock" | "write-lock" | "initialise" | "once-end"
            | "begin-wait" | "end-wait" | "wake-up" | "destroy",
            ..,
        ) => None,
        ("signal" | "broadcast", _, Some(_)) => None,
        ("signal" | "broadcast", ..) => Some(": no thread waits".to_owned()),
        ("try-lock" | "try-read-lock" | "try-write-lock", _, Some(_)) => None,
        ("try-lock" | "try-read-lock" | "try-write-lock", Some(held), None) => {
            Some(format!(" fails: {held}"))
        }
        ("compare-exchange", Some(read), None) => Some(format!(" fails: it is {read}")),
        ("choose", Some(picked), _) => Some(format!(" {picked}")),
        ("load", Some(read), _) => Some(format!(" = {read}")),
        ("store", _, Some(wrote)) => Some(format!(" = {wrote}")),
        (_, Some(read), Some(wrote)) if read != wrote => Some(format!(": {read} → {wrote}")),
        (_, Some(read), _) => Some(format!(": {read}")),
        _ => None,
    };
    if let Some(values) = values {
        words.push_str(&values);
    }
    words
}

/// A whole schedule in one line, in the manner of dejafu: `S0----S1--P0--`, for steps that were
/// taken by these threads.
///
/// `S` is a switch to a thread because the one before had ended or had to wait, `P` one that
/// preempts a thread that could have gone on, and each dash is a step.
pub fn line(steps: impl IntoIterator<Item = (u32, Switch)>) -> String {
    let mut line = String::new();
    for (n, (thread, switch)) in steps.into_iter().enumerate() {
        match switch {
            Switch::Preemption => line.push_str(&format!("P{thread}")),
            Switch::Free => line.push_str(&format!("S{thread}")),
            Switch::Same if n == 0 => line.push_str(&format!("S{thread}")),
            Switch::Same => {}
        }
        line.push('-');
    }
    line
}

/// The same for a schedule whose steps from `cycle` on repeat for ever: `S0--S1-(P2-P1-)*`.
pub fn lasso(steps: &[(u32, Switch)], cycle: usize) -> String {
    let whole = line(steps.iter().copied());
    let before = line(steps[..cycle].iter().copied()).len();
    format!("{}({})*", &whole[..before], &whole[before..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_stands_in_parentheses() {
        use Switch::{Free, Preemption, Same};
        let steps = [(0, Same), (0, Same), (1, Free), (1, Same), (2, Preemption)];
        assert_eq!(lasso(&steps, 3), "S0--S1-(-P2-)*");
        assert_eq!(lasso(&steps, 2), "S0--(S1--P2-)*");
        assert_eq!(lasso(&steps, 0), "(S0--S1--P2-)*");
        assert_eq!(lasso(&steps, 5), "S0--S1--P2-()*");
    }

    #[test]
    fn switches_and_steps_make_one_line() {
        use Switch::{Free, Preemption, Same};
        let steps = [
            (0, Same),
            (0, Same),
            (1, Free),
            (1, Same),
            (0, Preemption),
            (0, Same),
        ];
        assert_eq!(line(steps), "S0--S1--P0--");
        assert_eq!(line([]), "");
    }
}
