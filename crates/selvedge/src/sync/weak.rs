//! References that own nothing.

use std::fmt;
use std::mem::ManuallyDrop;
use std::panic::Location;

use super::Arc;
use crate::rt::shared::{self, Counter};
use crate::rt::site_of;

/// As [`std::sync::Weak`]. The count of the [`Arc`] it comes from is an atomic: whether the value
/// is still there is explored.
pub struct Weak<T: ?Sized> {
    value: std::sync::Weak<T>,
    /// `None` if there never was a value.
    counter: Option<Counter>,
}

impl<T> Weak<T> {
    /// Constructs a new `Weak<T>` without a value.
    pub const fn new() -> Weak<T> {
        Weak {
            value: std::sync::Weak::new(),
            counter: None,
        }
    }
}

impl<T: ?Sized> Weak<T> {
    pub(super) fn of(value: std::sync::Weak<T>, counter: Counter) -> Weak<T> {
        let counter = Some(counter);
        Weak { value, counter }
    }

    /// Attempts to make an `Arc` of it; `None` if the value was dropped.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let site = site_of(Location::caller());
        let counter = self.counter.as_ref()?;
        if !shared::revive(counter, self.address(), site) {
            return None;
        }
        let value = ManuallyDrop::new(self.value.upgrade()?);
        Some(Arc::of_owned(value))
    }

    /// Gets the number of `Arc`s of the value; zero if it was dropped, or if there never was one.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        let site = site_of(Location::caller());
        self.counter
            .as_ref()
            .map_or(0, |counter| shared::owners(counter, site))
    }

    /// Consumes the pointer, returning a raw one, for [`from_raw`](Weak::from_raw).
    pub fn into_raw(self) -> *const T {
        if let Some(counter) = self.counter {
            shared::keep(self.address(), counter);
        }
        self.value.into_raw()
    }

    /// Constructs the pointer from a raw one.
    ///
    /// # Safety
    ///
    /// The pointer must come from [`Weak::into_raw`], and no other `Weak` may be made of it.
    pub unsafe fn from_raw(pointer: *const T) -> Weak<T> {
        // SAFETY: `into_raw` gave out the pointer of the inner `Weak`.
        let value = unsafe { std::sync::Weak::from_raw(pointer) };
        let counter = shared::kept(pointer.cast::<()>().addr());
        Weak { value, counter }
    }

    fn address(&self) -> usize {
        self.value.as_ptr().cast::<()>().addr()
    }

    /// Whether the two point to the same value.
    pub fn ptr_eq(&self, other: &Weak<T>) -> bool {
        self.value.ptr_eq(&other.value)
    }

    /// Provides a raw pointer to the value, if there is one.
    pub fn as_ptr(&self) -> *const T {
        self.value.as_ptr()
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Weak<T> {
        Weak {
            value: self.value.clone(),
            counter: self.counter,
        }
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Weak<T> {
        Weak::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
