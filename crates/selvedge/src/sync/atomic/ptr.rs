//! Atomic pointers.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Value, Width};

use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, host, site_of};

/// A pointer is presented to the explorer as a block and an offset, which takes more than its own
/// eight bytes.
const WIDTH: Width = Width(16);

/// As [`std::sync::atomic::AtomicPtr`].
pub struct AtomicPtr<T> {
    object: Object,
    slot: Slot<*mut T>,
}

// SAFETY: all it holds is the name of a location, which any thread may access.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for AtomicPtr<T> {}

fn value<T>(pointer: *mut T) -> Value {
    let address = pointer.expose_provenance();
    host(|state| state.value_of(address))
}

fn pointer<T>(value: Value) -> *mut T {
    let address = host(|state| state.address_of(value));
    std::ptr::with_exposed_provenance_mut(address)
}

impl<T> AtomicPtr<T> {
    /// Creates a new `AtomicPtr`.
    #[track_caller]
    pub fn new(v: *mut T) -> AtomicPtr<T> {
        let site = site_of(Location::caller());
        AtomicPtr {
            object: Object::of_pointer("AtomicPtr", v.expose_provenance(), site),
            slot: Slot::new(),
        }
    }

    /// Loads the value without any synchronisation.
    ///
    /// # Safety
    ///
    /// No other thread may write at the same time. Such a race is reported.
    #[track_caller]
    pub unsafe fn unsync_load(&self) -> *mut T {
        pointer(
            self.object()
                .plain(AccessKind::Read, site_of(Location::caller())),
        )
    }

    #[inline(always)]
    #[track_caller]
    fn object(&self) -> &Object {
        if let Some(v) = self.slot.take_back() {
            let value = value(v);
            self.object.begin_with(value, site_of(Location::caller()));
        }
        &self.object
    }

    /// Returns a mutable reference to the underlying pointer.
    #[track_caller]
    pub fn get_mut(&mut self) -> &mut *mut T {
        let site = site_of(Location::caller());
        let before: *mut T = pointer(self.object().plain(AccessKind::Write, site));
        self.object = Object::of_pointer("AtomicPtr", before.expose_provenance(), site);
        self.slot.lend(before)
    }

    /// Gets access to a mutable reference to the inner value.
    #[track_caller]
    pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut *mut T) -> R) -> R {
        let site = site_of(Location::caller());
        let before = pointer(self.object().plain(AccessKind::Write, site));
        let mut inner = before;
        let result = f(&mut inner);
        if inner != before {
            self.object().replace(value(inner), site);
        }
        result
    }

    /// Consumes the atomic and returns the contained value.
    #[track_caller]
    pub fn into_inner(self) -> *mut T {
        pointer(
            self.object()
                .plain(AccessKind::Read, site_of(Location::caller())),
        )
    }

    /// Loads a value.
    #[track_caller]
    pub fn load(&self, order: Ordering) -> *mut T {
        pointer(load(self.object(), order))
    }

    /// Stores a value.
    #[track_caller]
    pub fn store(&self, val: *mut T, order: Ordering) {
        store(self.object(), value(val), order);
    }

    /// Stores a value, returning the previous value.
    #[track_caller]
    pub fn swap(&self, val: *mut T, order: Ordering) -> *mut T {
        pointer(rmw(self.object(), WIDTH, Rmw::Exchange(value(val)), order))
    }

    /// Stores a value if the current value is the same as `current`.
    #[track_caller]
    pub fn compare_and_swap(&self, current: *mut T, new: *mut T, order: Ordering) -> *mut T {
        match self.compare_exchange(current, new, order, failure_of(order)) {
            Ok(old) | Err(old) => old,
        }
    }

    /// Stores a value if the current value is the same as `current`.
    #[track_caller]
    pub fn compare_exchange(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        let values = (value(current), value(new));
        let outcome = compare_exchange(self.object(), WIDTH, values, success, failure);
        match outcome.wrote {
            Some(_) => Ok(current),
            None => Err(pointer(outcome.read)),
        }
    }

    /// The same, and may fail for no reason if
    /// [`Builder::spurious_failures`](crate::model::Builder::spurious_failures) says so.
    #[track_caller]
    pub fn compare_exchange_weak(
        &self,
        current: *mut T,
        new: *mut T,
        success: Ordering,
        failure: Ordering,
    ) -> Result<*mut T, *mut T> {
        if misses() {
            return missed(current, self.load(failure));
        }
        self.compare_exchange(current, new, success, failure)
    }

    /// Fetches the value, and applies a function to it that returns an optional new value.
    #[track_caller]
    pub fn fetch_update<F>(
        &self,
        set_order: Ordering,
        fetch_order: Ordering,
        mut f: F,
    ) -> Result<*mut T, *mut T>
    where
        F: FnMut(*mut T) -> Option<*mut T>,
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

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        AtomicPtr::new(std::ptr::null_mut())
    }
}

impl<T> From<*mut T> for AtomicPtr<T> {
    #[track_caller]
    fn from(v: *mut T) -> Self {
        AtomicPtr::new(v)
    }
}

impl<T> fmt::Debug for AtomicPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicPtr").finish_non_exhaustive()
    }
}
