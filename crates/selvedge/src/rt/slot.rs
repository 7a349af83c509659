//! Room for the value of an atomic while the program has an exclusive reference to it.
//!
//! The value of an atomic lives in the checker, where no reference can point. `get_mut` copies it here and
//! lends it out. Nobody else can access the atomic meanwhile, so all accesses before are ordered before
//! those after: the atomic goes on as a new location, whose initial value is what is found here
//! at the next access.

use std::cell::{Cell, UnsafeCell};
use std::panic::RefUnwindSafe;

/// A value that may be lent out.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    value: UnsafeCell<Option<T>>,
    lent: Cell<bool>,
}

// SAFETY: all threads of a model run on one OS thread; elsewhere an atomic is of no use.
unsafe impl<T> Sync for Slot<T> {}
// SAFETY: as above.
unsafe impl<T> Send for Slot<T> {}

impl<T> RefUnwindSafe for Slot<T> {}

impl<T: Copy> Slot<T> {
    pub(crate) const fn new() -> Slot<T> {
        Slot {
            value: UnsafeCell::new(None),
            lent: Cell::new(false),
        }
    }

    /// Lends out `value`.
    pub(crate) fn lend(&mut self, value: T) -> &mut T {
        self.lent.set(true);
        self.value.get_mut().insert(value)
    }

    /// Takes back the value, if it was lent out since the last call.
    #[inline(always)]
    pub(crate) fn take_back(&self) -> Option<T> {
        if !self.lent.replace(false) {
            return None;
        }
        // SAFETY: a reference that was lent out borrowed the whole atomic exclusively, and is gone.
        unsafe { *self.value.get() }
    }
}
