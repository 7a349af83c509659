//! The sort of operation that a site performs.

use serde::{Deserialize, Serialize};

use crate::op::{Function, Op};
use crate::words::{self, ObjectKind};

/// The sort of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Doing {
    /// Several different ones.
    Mixed,
    /// A load.
    Load,
    /// A store; giving a mutex back is one.
    Store,
    /// A read-modify-write or a compare-exchange.
    Update,
    /// A fence.
    Fence,
    /// Creation of a thread.
    Create,
    /// Waiting for the end of one or all threads.
    Join,
    /// A data choice.
    Choice,
    /// A step on a mutex.
    Mutex,
    /// A step on a read-write lock.
    ReadWriteLock,
    /// A step on a semaphore.
    Semaphore,
    /// A step on a condition variable.
    Condition,
    /// A step on a barrier.
    Barrier,
    /// A step on a once.
    Once,
    /// The end of an object's life.
    Destroy,
}

impl Doing {
    /// Both at one site.
    pub(super) fn or(self, other: Doing) -> Doing {
        if self == other { self } else { Doing::Mixed }
    }
}

impl From<Op> for Doing {
    fn from(op: Op) -> Doing {
        match op {
            Op::Load { .. } => Doing::Load,
            Op::Store { .. } => Doing::Store,
            Op::Fence { .. } => Doing::Fence,
            Op::Create { .. } => Doing::Create,
            Op::Join { .. } | Op::JoinAll => Doing::Join,
            Op::Choose { .. } => Doing::Choice,
            Op::Update { function, .. } => match function {
                Function::Memory { .. } => Doing::Update,
                Function::Object(function) => match words::kind(function) {
                    Some(ObjectKind::Memory) => Doing::Update,
                    Some(ObjectKind::Mutex | ObjectKind::Guard) => Doing::Mutex,
                    Some(ObjectKind::ReadWriteLock) => Doing::ReadWriteLock,
                    Some(ObjectKind::Semaphore) => Doing::Semaphore,
                    Some(ObjectKind::Condition) => Doing::Condition,
                    Some(ObjectKind::Barrier) => Doing::Barrier,
                    Some(ObjectKind::Once) => Doing::Once,
                    None => Doing::Destroy,
                },
            },
        }
    }
}
