//! Visible operations: what a thread is about to do to memory that others can see.

use serde::{Deserialize, Serialize};

use crate::ids::{Location, ThreadId};
use crate::objects::ObjectFunction;

/// The contents of a location: up to 128 bits, zero-extended. The abstract state of a
/// synchronisation object is a value too (see [`crate::objects`]).
pub type Value = u128;

/// How many bytes an access covers: 1, 2, 4, 8 or 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Width(pub u8);

impl Width {
    /// Cuts `value` down to this width.
    pub fn truncate(self, value: Value) -> Value {
        match self.0 {
            16.. => value,
            bytes => value & ((1 << (8 * u32::from(bytes))) - 1),
        }
    }

    /// Reads `value` as a signed number of this width.
    pub fn sign_extend(self, value: Value) -> i128 {
        let unused = 128 - 8 * u32::from(self.0.min(16));
        ((value << unused) as i128) >> unused
    }
}

/// The order written at an access or a fence. `--model sc` ignores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum MemoryOrder {
    /// A plain access that was made visible (`--plain sc`, or on a location that is also atomic).
    Plain,
    /// `memory_order_relaxed`, and `volatile`.
    Relaxed,
    /// `memory_order_acquire` (and `consume`, which is treated as acquire).
    Acquire,
    /// `memory_order_release`.
    Release,
    /// `memory_order_acq_rel`.
    AcqRel,
    /// `memory_order_seq_cst`.
    SeqCst,
}

/// A visible operation that a thread is about to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// Reads a location.
    Load {
        /// The location that is read.
        at: Location,
        /// With which order.
        order: MemoryOrder,
    },
    /// Writes a location.
    Store {
        /// The location that is written.
        at: Location,
        /// The new contents.
        value: Value,
        /// With which order.
        order: MemoryOrder,
    },
    /// Reads a location and, depending on what was read, writes it in the same step, goes on
    /// without writing, or waits. Read-modify-writes, compare-exchanges and everything that
    /// blocks (see [`Function`]).
    Update {
        /// The location that is updated.
        at: Location,
        /// From the value read to the effect.
        function: Function,
        /// The order of a step that writes.
        order: MemoryOrder,
        /// The order of a step that does not (a failed compare-exchange).
        failure: MemoryOrder,
    },
    /// A memory fence.
    Fence {
        /// With which order.
        order: MemoryOrder,
    },
    /// Starts a thread.
    Create {
        /// The new thread.
        child: ThreadId,
    },
    /// Waits for a thread to end.
    Join {
        /// The thread waited for.
        child: ThreadId,
    },
    /// Waits until every other thread has ended or can go no further (exit handlers run then).
    JoinAll,
    /// Picks a number below `alternatives`; every one of them is explored.
    Choose {
        /// How many there are, at least one.
        alternatives: u32,
    },
}

impl Op {
    /// The location it touches, if it touches one.
    pub fn location(&self) -> Option<Location> {
        match *self {
            Op::Load { at, .. } | Op::Store { at, .. } | Op::Update { at, .. } => Some(at),
            Op::Fence { .. } | Op::Create { .. } | Op::Join { .. } => None,
            Op::JoinAll | Op::Choose { .. } => None,
        }
    }

    /// Whether it touches no location and has only one outcome.
    pub fn is_silent(&self) -> bool {
        match self {
            Op::Fence { .. } | Op::Create { .. } | Op::Join { .. } | Op::JoinAll => true,
            Op::Load { .. } | Op::Store { .. } | Op::Update { .. } | Op::Choose { .. } => false,
        }
    }

    /// Whether it can come to wait for other threads.
    pub fn may_wait(&self) -> bool {
        match self {
            Op::Join { .. } | Op::JoinAll => true,
            Op::Update { function, .. } => function.can_block(),
            _ => false,
        }
    }
}

/// The function that an [`Op::Update`] applies to the value it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Function {
    /// A read-modify-write of memory.
    Memory {
        /// Where in the location the access begins, in bytes.
        offset: u8,
        /// The width of the access; results wrap to it, and the rest of the location stays as it is.
        width: Width,
        /// The computation.
        rmw: Rmw,
    },
    /// A step on a synchronisation object.
    Object(ObjectFunction),
}

/// The read-modify-writes of C11 and of the ThreadSanitizer ABI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rmw {
    /// Writes the operand.
    Exchange(Value),
    /// Adds the operand.
    Add(Value),
    /// Subtracts the operand.
    Sub(Value),
    /// Bitwise and.
    And(Value),
    /// Bitwise or.
    Or(Value),
    /// Bitwise exclusive or.
    Xor(Value),
    /// Bitwise not-and.
    Nand(Value),
    /// Signed maximum.
    Max(Value),
    /// Signed minimum.
    Min(Value),
    /// Unsigned maximum.
    UMax(Value),
    /// Unsigned minimum.
    UMin(Value),
    /// Writes `desired` if `expected` is read, otherwise writes nothing.
    CompareExchange {
        /// The value it wants to see.
        expected: Value,
        /// The value it writes then.
        desired: Value,
    },
    /// Writes the operand; the thread does not see what was there. This is a store to a part of a
    /// location.
    Replace(Value),
}

/// The effect of an update on a given value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It writes this value.
    Write(Value),
    /// It writes nothing and the thread goes on.
    Keep,
    /// The guard fails: the thread waits for another value.
    Block,
    /// One of this many alternatives is taken, see [`Function::choose`].
    Choose(u32),
}

impl Function {
    /// A read-modify-write of a whole location.
    pub fn memory(width: Width, rmw: Rmw) -> Function {
        Function::Memory {
            offset: 0,
            width,
            rmw,
        }
    }

    /// The effect if it reads `value`.
    pub fn apply(&self, value: Value) -> Effect {
        match *self {
            Function::Memory { offset, width, rmw } => {
                let shift = 8 * u32::from(offset);
                match rmw.apply(width, width.truncate(value >> shift)) {
                    Effect::Write(part) => {
                        let rest = value & !(width.truncate(Value::MAX) << shift);
                        Effect::Write(rest | part << shift)
                    }
                    other => other,
                }
            }
            Function::Object(function) => function.apply(value),
        }
    }

    /// Whether its guard can fail, so that the thread has to wait.
    pub fn can_block(&self) -> bool {
        match self {
            Function::Memory { .. } => false,
            Function::Object(function) => function.can_block(),
        }
    }

    /// The value written when alternative `choice` of an [`Effect::Choose`] is taken.
    pub fn choose(&self, value: Value, choice: u32) -> Value {
        match *self {
            Function::Memory { .. } => unreachable!("read-modify-writes have one effect"),
            Function::Object(function) => function.choose(value, choice),
        }
    }
}

impl Rmw {
    fn apply(self, width: Width, old: Value) -> Effect {
        let signed = |v| width.sign_extend(v);
        let new = match self {
            Rmw::Exchange(v) | Rmw::Replace(v) => v,
            Rmw::Add(v) => old.wrapping_add(v),
            Rmw::Sub(v) => old.wrapping_sub(v),
            Rmw::And(v) => old & v,
            Rmw::Or(v) => old | v,
            Rmw::Xor(v) => old ^ v,
            Rmw::Nand(v) => !(old & v),
            Rmw::Max(v) => std::cmp::max_by_key(old, v, |&v| signed(v)),
            Rmw::Min(v) => std::cmp::min_by_key(old, v, |&v| signed(v)),
            Rmw::UMax(v) => old.max(v),
            Rmw::UMin(v) => old.min(v),
            Rmw::CompareExchange { expected, .. } if expected != old => return Effect::Keep,
            Rmw::CompareExchange { desired, .. } => desired,
        };
        Effect::Write(width.truncate(new))
    }
}
