//! Operations in the words of the source.

use std::collections::HashMap;

use selvedge_core::objects::{self, ObjectFunction};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, Location, MemoryOrder, Op, Value};

use crate::report::{Datum, thread_name};

/// What kind of object a location is, told by the operations on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Memory,
    Mutex,
    ReadWriteLock,
    Semaphore,
    Condition,
    Barrier,
    Once,
}

/// The kinds of all locations that `ops` touch.
pub(super) fn kinds<'a>(ops: impl IntoIterator<Item = &'a Op>) -> HashMap<Location, Kind> {
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

fn kind(function: ObjectFunction) -> Option<Kind> {
    use ObjectFunction as F;
    let kind = match function {
        F::MutexLock { .. } | F::MutexTryLock { .. } => Kind::Mutex,
        F::ReadLock | F::ReadTryLock | F::ReadUnlock | F::WriteLock | F::WriteTryLock => {
            Kind::ReadWriteLock
        }
        F::SemaphoreWait | F::SemaphoreTryWait | F::SemaphorePost => Kind::Semaphore,
        F::BarrierArrive { .. } | F::BarrierAwait { .. } => Kind::Barrier,
        F::OnceBegin => Kind::Once,
        F::ConditionEnqueue
        | F::ConditionAwait { .. }
        | F::ConditionLeave { .. }
        | F::ConditionSignal
        | F::ConditionBroadcast => Kind::Condition,
        F::Destroy => return None,
    };
    Some(kind)
}

/// The name of an operation on a location of the given kind.
pub(super) fn operation(op: &Op, on: Kind) -> &'static str {
    use ObjectFunction as F;
    match op {
        Op::Load { .. } => "load",
        Op::Store { value, .. } => match on {
            Kind::Memory => "store",
            Kind::Mutex | Kind::ReadWriteLock if *value == objects::FREE => "unlock",
            Kind::Once if *value == objects::DONE => "once-end",
            _ => "initialise",
        },
        Op::Update {
            function: Function::Memory { rmw, .. },
            ..
        } => match rmw {
            Rmw::Exchange(_) => "exchange",
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
            F::Destroy => "destroy",
        },
        Op::Fence { .. } => "fence",
        Op::Create { .. } => "create",
        Op::Join { .. } => "join",
        Op::JoinAll => "join-all",
        Op::Choose { .. } => "choose",
    }
}

/// What a thread waits for that cannot perform `op`.
pub(super) fn waits_for(op: &Op, on: Kind, object: Option<&str>) -> String {
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
            _ => format!("for {object}"),
        },
        other => format!("to {} {object}", operation(other, on)),
    }
}

/// The state of a synchronisation object for people; `None` where it says nothing.
pub(super) fn state(on: Kind, value: Value) -> Option<Datum> {
    let text = |text: String| Some(Datum::Text(text));
    match on {
        Kind::Memory => None,
        Kind::Mutex => match value {
            objects::FREE => text("free".to_owned()),
            owner => text(format!(
                "held by {}",
                thread_name((owner as u32).wrapping_sub(1))
            )),
        },
        Kind::ReadWriteLock => match value {
            objects::FREE => text("free".to_owned()),
            objects::WRITER.. => text("held for writing".to_owned()),
            readers => text(format!("{readers} readers")),
        },
        Kind::Semaphore => Some(Datum::Unsigned(value as u64)),
        Kind::Condition => text(format!(
            "{} waiting, {} woken",
            (value as u64).count_ones(),
            ((value >> objects::CONDITION_SLOTS) as u64).count_ones()
        )),
        Kind::Barrier => text(format!("{} arrived", value as u64)),
        Kind::Once => text(
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
pub(super) fn order(op: &Op, on: Kind) -> Option<String> {
    let order = match op {
        Op::Load { order, .. } | Op::Store { order, .. } | Op::Fence { order } => order,
        Op::Update { order, .. } => order,
        _ => return None,
    };
    if on != Kind::Memory {
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
