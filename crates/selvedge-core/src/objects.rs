//! Synchronisation objects as guarded updates of an abstract value.
//!
//! Every blocking object is a location whose value is its state. A step on it reads that state and
//! either writes a new one, leaves it, or has to wait. Explorers treat all of them alike.
//!
//! | object | value |
//! |---|---|
//! | mutex, spin lock | 0 free, otherwise 1 + the owner's thread number |
//! | read-write lock | number of readers, or [`WRITER`] |
//! | semaphore | its count |
//! | condition variable | bit *s*: slot *s* waits; bit 64 + *s*: slot *s* was woken |
//! | barrier | generation in the upper 64 bits, arrived threads in the lower |
//! | once | 0 not begun, 1 running, 2 done, 3 poisoned |
//! | guard of a modelled resource | its state in the lower 64 bits, [`TAKEN`] while a thread uses it |
//!
//! Any of them is [`DESTROYED`] after its end; a step that meets that value neither writes nor
//! waits, so that the machine can report it.

use serde::{Deserialize, Serialize};

use crate::ids::ThreadId;
use crate::op::{Effect, MemoryOrder, Value};

/// The value of a mutex, read-write lock or once that was never used.
pub const FREE: Value = 0;
/// The value of a read-write lock held by a writer.
pub const WRITER: Value = 1 << 64;
/// The value of a once whose routine has run.
pub const DONE: Value = 2;
/// The value of a once whose routine has panicked. Nothing waits for it, nor begins the routine again.
pub const POISONED: Value = 3;
/// Set in the value of a guard while a thread uses what it guards.
pub const TAKEN: Value = 1 << 64;
/// The value of an object that the program has destroyed.
pub const DESTROYED: Value = Value::MAX;
/// How many threads can wait on one condition variable at a time.
pub const CONDITION_SLOTS: u32 = 64;

/// A step on a synchronisation object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObjectFunction {
    /// Takes a free mutex, waits for a held one. Unlocking is a store of [`FREE`].
    MutexLock {
        /// The thread that takes it.
        owner: ThreadId,
    },
    /// Takes a free mutex, leaves a held one.
    MutexTryLock {
        /// The thread that takes it.
        owner: ThreadId,
    },
    /// Waits until no writer holds the lock, then counts one reader more.
    ReadLock,
    /// The same without waiting.
    ReadTryLock,
    /// One reader less.
    ReadUnlock,
    /// Waits until no thread holds the lock. A writer unlocks with a store of [`FREE`].
    WriteLock,
    /// The same without waiting.
    WriteTryLock,
    /// Waits for a positive count and takes one off.
    SemaphoreWait,
    /// The same without waiting.
    SemaphoreTryWait,
    /// Adds one to the count.
    SemaphorePost,
    /// Joins the waiters in the lowest free slot, which [`free_slot`] tells from the value read.
    ConditionEnqueue,
    /// Waits until the slot was woken, then leaves it.
    ConditionAwait {
        /// The slot taken by the enqueueing step.
        slot: u32,
    },
    /// Leaves the slot, woken or not (a timed wait, a spurious wake-up); [`was_woken`] tells.
    ConditionLeave {
        /// The slot taken by the enqueueing step.
        slot: u32,
    },
    /// Wakes one waiter, any of them; nothing if there is none.
    ConditionSignal,
    /// Wakes every waiter.
    ConditionBroadcast,
    /// Arrives at a barrier for `parties` threads; the last one opens the next generation.
    BarrierArrive {
        /// How many threads meet.
        parties: u32,
    },
    /// Waits until the barrier has left `generation`.
    BarrierAwait {
        /// The generation read when arriving.
        generation: u64,
    },
    /// Begins the routine of a once, waits while it runs elsewhere, goes on when it is done or has panicked.
    /// The routine's end is a store of [`DONE`].
    OnceBegin,
    /// Takes a guard when its state allows it, waits otherwise. A store of the next state gives it
    /// back.
    LockWhen {
        /// The bits of the state of which one is needed; none is needed if this is 0.
        bits: u32,
        /// Enough if the state's upper half is at least this, and this is not 0.
        room: u32,
    },
    /// Ends the object's life; the value read tells whether it was in use.
    Destroy,
}

/// The slot that [`ObjectFunction::ConditionEnqueue`] takes after reading `value`, if one is free.
pub fn free_slot(value: Value) -> Option<u32> {
    let taken = (value | (value >> CONDITION_SLOTS)) as u64;
    let slot = taken.trailing_ones();
    (slot < CONDITION_SLOTS).then_some(slot)
}

/// Whether the waiter in `slot` has been woken in state `value`.
pub fn was_woken(value: Value, slot: u32) -> bool {
    value & woken(slot) != 0
}

/// The generation of a barrier in state `value`.
pub fn generation(value: Value) -> u64 {
    (value >> 64) as u64
}

/// Whether arriving at a barrier for `parties` in state `value` completes it.
pub fn completes(value: Value, parties: u32) -> bool {
    value as u64 + 1 >= u64::from(parties)
}

fn waiting(slot: u32) -> Value {
    1 << slot
}

fn woken(slot: u32) -> Value {
    1 << (slot + CONDITION_SLOTS)
}

impl ObjectFunction {
    /// The effect of the step if it reads `value`.
    pub fn apply(self, value: Value) -> Effect {
        use Effect::{Block, Choose, Keep, Write};
        use ObjectFunction as F;
        let when = |guard: bool, new: Value, otherwise: Effect| {
            if guard { Write(new) } else { otherwise }
        };
        let owned = |owner: ThreadId| Value::from(owner.0) + 1;
        if value == DESTROYED {
            return Keep;
        }
        match self {
            F::MutexLock { owner } => when(value == FREE, owned(owner), Block),
            F::MutexTryLock { owner } => when(value == FREE, owned(owner), Keep),
            F::ReadLock => when(value < WRITER, value.wrapping_add(1), Block),
            F::ReadTryLock => when(value < WRITER, value.wrapping_add(1), Keep),
            F::ReadUnlock => Write(value.saturating_sub(1)),
            F::WriteLock => when(value == FREE, WRITER, Block),
            F::WriteTryLock => when(value == FREE, WRITER, Keep),
            F::SemaphoreWait => when(value > 0, value.wrapping_sub(1), Block),
            F::SemaphoreTryWait => when(value > 0, value.wrapping_sub(1), Keep),
            F::SemaphorePost => Write(value + 1),
            F::ConditionEnqueue => match free_slot(value) {
                Some(slot) => Write(value | waiting(slot)),
                None => Keep,
            },
            F::ConditionAwait { slot } => when(was_woken(value, slot), value & !woken(slot), Block),
            F::ConditionLeave { slot } => Write(value & !waiting(slot) & !woken(slot)),
            F::ConditionSignal => match (value as u64).count_ones() {
                0 => Keep,
                1 => Write(self.choose(value, 0)),
                waiters => Choose(waiters),
            },
            F::ConditionBroadcast => match value as u64 {
                0 => Keep,
                waiters => {
                    let waiters = Value::from(waiters);
                    Write((value & !waiters) | (waiters << CONDITION_SLOTS))
                }
            },
            F::BarrierArrive { parties } => {
                let new = if completes(value, parties) {
                    Value::from(generation(value).wrapping_add(1)) << 64
                } else {
                    value + 1
                };
                Write(new)
            }
            F::BarrierAwait { generation: left } => {
                if generation(value) == left {
                    Block
                } else {
                    Keep
                }
            }
            F::OnceBegin => match value {
                FREE => Write(1),
                DONE | POISONED => Keep,
                _ => Block,
            },
            F::LockWhen { bits, room } => {
                let state = value as u64;
                let enough = room != 0 && (state >> 32) >= u64::from(room);
                let allowed = bits == 0 || state as u32 & bits != 0 || enough;
                when(value < TAKEN && allowed, value | TAKEN, Block)
            }
            F::Destroy => Write(DESTROYED),
        }
    }

    /// The value written when alternative `choice` of an [`Effect::Choose`] is taken.
    pub fn choose(self, value: Value, choice: u32) -> Value {
        debug_assert_eq!(self, ObjectFunction::ConditionSignal, "only signals choose");
        let mut waiters = value as u64;
        for _ in 0..choice {
            waiters &= waiters - 1;
        }
        let slot = waiters.trailing_zeros();
        (value & !waiting(slot)) | woken(slot)
    }

    /// The order of a step that leaves the object as it is. A thread that passes a barrier or finds
    /// a routine done acquires what led there; a thread that finds a lock taken acquires nothing.
    pub fn unchanged_order(self) -> MemoryOrder {
        match self {
            ObjectFunction::BarrierAwait { .. } | ObjectFunction::OnceBegin => MemoryOrder::Acquire,
            _ => MemoryOrder::Relaxed,
        }
    }

    /// Whether this step can wait (its guard can fail).
    pub fn can_block(self) -> bool {
        use ObjectFunction as F;
        matches!(
            self,
            F::MutexLock { .. }
                | F::ReadLock
                | F::WriteLock
                | F::SemaphoreWait
                | F::ConditionAwait { .. }
                | F::BarrierAwait { .. }
                | F::OnceBegin
                | F::LockWhen { .. }
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_is_taken_when_its_state_allows_it() {
        let take = |bits, room, value| ObjectFunction::LockWhen { bits, room }.apply(value);
        assert_eq!(take(0, 0, 0), Effect::Write(TAKEN));
        assert_eq!(take(0, 0, TAKEN), Effect::Block);
        assert_eq!(take(1, 0, 2), Effect::Block);
        assert_eq!(take(3, 0, 2), Effect::Write(TAKEN | 2));
        let state = 5 << 32;
        assert_eq!(take(4, 5, state), Effect::Write(TAKEN | state));
        assert_eq!(take(4, 6, state), Effect::Block);
        assert_eq!(take(4, 6, state | 4), Effect::Write(TAKEN | state | 4));
    }
}
