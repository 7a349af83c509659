//! Atomic types, as in [`std::sync::atomic`].
//!
//! Each operation has the order that is written, `SeqCst` included. `compare_exchange_weak` fails
//! without a reason only if
//! [`Builder::spurious_failures`](crate::model::Builder::spurious_failures) says so.

mod bool;
mod int;
mod operations;
mod ptr;

pub use self::bool::AtomicBool;
pub use int::{AtomicI8, AtomicI16, AtomicI32, AtomicI64, AtomicIsize};
pub use int::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize};
pub use ptr::AtomicPtr;
#[doc(no_inline)]
pub use std::sync::atomic::Ordering;

use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Op, Outcome, Value, Width};

use crate::rt::{Object, assume_nothing, misses_spuriously, site_of, visible};

/// Signals the processor that it is inside a busy-wait spin loop. Nothing depends on it here.
pub fn spin_loop_hint() {}

/// An atomic fence.
///
/// # Panics
///
/// If `order` is `Relaxed`.
#[track_caller]
pub fn fence(order: Ordering) {
    assert!(
        order != Ordering::Relaxed,
        "there is no such thing as a relaxed fence"
    );
    let order = memory_order(order);
    visible(Op::Fence { order }, site_of(Location::caller()));
}

/// Keeps the compiler from moving accesses. No thread can tell.
pub fn compiler_fence(_order: Ordering) {}

fn memory_order(order: Ordering) -> MemoryOrder {
    match order {
        Ordering::Relaxed => MemoryOrder::Relaxed,
        Ordering::Acquire => MemoryOrder::Acquire,
        Ordering::Release => MemoryOrder::Release,
        Ordering::AcqRel => MemoryOrder::AcqRel,
        Ordering::SeqCst => MemoryOrder::SeqCst,
        _ => unreachable!("there are five orders"),
    }
}

#[inline(always)]
#[track_caller]
fn load(object: &Object, order: Ordering) -> Value {
    assert!(
        !matches!(order, Ordering::Release | Ordering::AcqRel),
        "there is no such thing as a release load or an acquire-release load"
    );
    object.load(memory_order(order), site_of(Location::caller()))
}

#[inline(always)]
#[track_caller]
fn store(object: &Object, value: Value, order: Ordering) {
    assert!(
        !matches!(order, Ordering::Acquire | Ordering::AcqRel),
        "there is no such thing as an acquire store or an acquire-release store"
    );
    object.store(value, memory_order(order), site_of(Location::caller()));
}

#[inline(always)]
#[track_caller]
fn rmw(object: &Object, width: Width, rmw: Rmw, order: Ordering) -> Value {
    let function = Function::memory(width, rmw);
    let order = memory_order(order);
    let site = site_of(Location::caller());
    object.update(function, order, order, site).read
}

#[inline(always)]
#[track_caller]
fn compare_exchange(
    object: &Object,
    width: Width,
    (expected, desired): (Value, Value),
    success: Ordering,
    failure: Ordering,
) -> Outcome {
    assert!(
        !matches!(failure, Ordering::Release | Ordering::AcqRel),
        "there is no such thing as a release or acquire-release failure order"
    );
    let rmw = Rmw::CompareExchange { expected, desired };
    let function = Function::memory(width, rmw);
    let site = site_of(Location::caller());
    object.update(function, memory_order(success), memory_order(failure), site)
}

/// Whether the weak compare-exchange that is asked for fails without a reason.
#[track_caller]
fn misses() -> bool {
    misses_spuriously(site_of(Location::caller()))
}

/// The result of a weak compare-exchange that failed without a reason, having read `value`.
fn missed<T: PartialEq>(current: T, value: T) -> Result<T, T> {
    if value != current {
        // A failure for a reason is one of those that do not need this.
        assume_nothing();
    }
    Err(value)
}

/// The failure order that `compare_and_swap` had.
fn failure_of(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        order => order,
    }
}
