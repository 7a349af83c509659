//! Atomic booleans.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Site, Value, Width};

use super::operations::operations;
use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, site_of};

/// As [`std::sync::atomic::AtomicBool`].
pub struct AtomicBool {
    object: Object,
    slot: Slot<bool>,
}

operations!(AtomicBool, bool, false);

impl AtomicBool {
    const WIDTH: Width = Width(1);

    fn begin(v: bool, site: Site) -> Object {
        Object::new("AtomicBool", Value::from(v), site)
    }

    fn value(v: bool) -> Value {
        Value::from(v)
    }

    fn inner(value: Value) -> bool {
        value != 0
    }

    /// Logical "and" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_and(&self, val: bool, order: Ordering) -> bool {
        self.rmw(Rmw::And(Value::from(val)), order)
    }

    /// Logical "nand" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_nand(&self, val: bool, order: Ordering) -> bool {
        // Bitwise, it would leave a byte that is no boolean.
        let function = if val { Rmw::Xor(1) } else { Rmw::Exchange(1) };
        self.rmw(function, order)
    }

    /// Logical "or" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_or(&self, val: bool, order: Ordering) -> bool {
        self.rmw(Rmw::Or(Value::from(val)), order)
    }

    /// Logical "xor" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_xor(&self, val: bool, order: Ordering) -> bool {
        self.rmw(Rmw::Xor(Value::from(val)), order)
    }

    /// Logical "not" of the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}
