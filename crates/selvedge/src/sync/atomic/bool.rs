//! Atomic booleans.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Value, Width};

use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, site_of};

const WIDTH: Width = Width(1);

/// As [`std::sync::atomic::AtomicBool`].
pub struct AtomicBool(Object, Slot<bool>);

impl AtomicBool {
    /// Creates a new `AtomicBool`.
    #[track_caller]
    pub fn new(v: bool) -> AtomicBool {
        let site = site_of(Location::caller());
        AtomicBool(Object::new("AtomicBool", Value::from(v), site), Slot::new())
    }

    #[inline(always)]
    #[track_caller]
    fn object(&self) -> &Object {
        if let Some(v) = self.1.take_back() {
            self.0
                .begin_with(Value::from(v), site_of(Location::caller()));
        }
        &self.0
    }

    /// Returns a mutable reference to the underlying [`bool`].
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut bool {
        let site = site_of(Location::caller());
        let value = self.object().plain(AccessKind::Write, site);
        self.0 = Object::new("AtomicBool", value, site);
        self.1.lend(value != 0)
    }

    /// Gets access to a mutable reference to the inner value.
    #[track_caller]
    pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut bool) -> R) -> R {
        let site = site_of(Location::caller());
        let before = self.object().plain(AccessKind::Write, site) != 0;
        let mut inner = before;
        let result = f(&mut inner);
        if inner != before {
            self.object().replace(Value::from(inner), site);
        }
        result
    }

    /// Loads the value without any synchronisation.
    ///
    /// # Safety
    ///
    /// No other thread may write at the same time. Such a race is reported.
    #[track_caller]
    pub unsafe fn unsync_load(&self) -> bool {
        self.object()
            .plain(AccessKind::Read, site_of(Location::caller()))
            != 0
    }

    /// Consumes the atomic and returns the contained value.
    #[track_caller]
    pub fn into_inner(self) -> bool {
        self.object()
            .plain(AccessKind::Read, site_of(Location::caller()))
            != 0
    }

    /// Loads a value.
    #[track_caller]
    pub fn load(&self, order: Ordering) -> bool {
        load(self.object(), order) != 0
    }

    /// Stores a value.
    #[track_caller]
    pub fn store(&self, val: bool, order: Ordering) {
        store(self.object(), Value::from(val), order);
    }

    /// Stores a value, returning the previous value.
    #[track_caller]
    pub fn swap(&self, val: bool, order: Ordering) -> bool {
        rmw(self.object(), WIDTH, Rmw::Exchange(Value::from(val)), order) != 0
    }

    /// Stores a value if the current value is the same as `current`.
    #[track_caller]
    pub fn compare_and_swap(&self, current: bool, new: bool, order: Ordering) -> bool {
        match self.compare_exchange(current, new, order, failure_of(order)) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Stores a value if the current value is the same as `current`.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        let values = (Value::from(current), Value::from(new));
        let outcome = compare_exchange(self.object(), WIDTH, values, success, failure);
        match outcome.wrote {
            Some(_) => Ok(current),
            None => Err(outcome.read != 0),
        }
    }

    /// The same, and may fail for no reason if
    /// [`Builder::spurious_failures`](crate::model::Builder::spurious_failures) says so.
    #[track_caller]
    pub fn compare_exchange_weak(
        &self,
        current: bool,
        new: bool,
        success: Ordering,
        failure: Ordering,
    ) -> Result<bool, bool> {
        if misses() {
            return missed(current, self.load(failure));
        }
        self.compare_exchange(current, new, success, failure)
    }

    /// Logical "and" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_and(&self, val: bool, order: Ordering) -> bool {
        rmw(self.object(), WIDTH, Rmw::And(Value::from(val)), order) != 0
    }

    /// Logical "nand" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_nand(&self, val: bool, order: Ordering) -> bool {
        // Bitwise, it would leave a byte that is no boolean.
        let function = if val { Rmw::Xor(1) } else { Rmw::Exchange(1) };
        rmw(self.object(), WIDTH, function, order) != 0
    }

    /// Logical "or" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_or(&self, val: bool, order: Ordering) -> bool {
        rmw(self.object(), WIDTH, Rmw::Or(Value::from(val)), order) != 0
    }

    /// Logical "xor" with the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_xor(&self, val: bool, order: Ordering) -> bool {
        rmw(self.object(), WIDTH, Rmw::Xor(Value::from(val)), order) != 0
    }

    /// Logical "not" of the current value, returning the previous value.
    #[track_caller]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }

    /// Fetches the value, and applies a function to it that returns an optional new value.
    #[track_caller]
    pub fn fetch_update<F>(
        &self,
        set_order: Ordering,
        fetch_order: Ordering,
        mut f: F,
    ) -> Result<bool, bool>
    where
        F: FnMut(bool) -> Option<bool>,
    {
        let mut before = self.load(fetch_order);
        while let Some(next) = f(before) {
            match self.compare_exchange(before, next, set_order, fetch_order) {
                Ok(before) => return Ok(before),
                Err(other) => before = other,
            }
        }
        Err(before)
    }
}

impl Default for AtomicBool {
    #[track_caller]
    fn default() -> Self {
        AtomicBool::new(false)
    }
}

impl From<bool> for AtomicBool {
    #[track_caller]
    fn from(v: bool) -> Self {
        AtomicBool::new(v)
    }
}

impl fmt::Debug for AtomicBool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicBool").finish_non_exhaustive()
    }
}
