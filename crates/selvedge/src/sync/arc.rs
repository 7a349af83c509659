//! Shared ownership.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::error::Error;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::{self, ManuallyDrop};
use std::ops;
use std::panic::Location;
use std::pin::Pin;

use selvedge_core::MemoryOrder;

use super::Weak;
use crate::rt::shared::{self, Last};
use crate::rt::site_of;

/// A thread-safe reference-counting pointer, as [`std::sync::Arc`].
///
/// Dropping a reference synchronises with the thread that drops the value. At the end of each execution, an
/// `Arc` that was never dropped is reported.
pub struct Arc<T: ?Sized> {
    value: ManuallyDrop<std::sync::Arc<T>>,
}

impl<T> Arc<T> {
    /// Constructs a new `Arc<T>`.
    #[track_caller]
    pub fn new(value: T) -> Arc<T> {
        Arc::from_std(std::sync::Arc::new(value))
    }

    /// Constructs a new `Pin<Arc<T>>`.
    #[track_caller]
    pub fn pin(data: T) -> Pin<Arc<T>> {
        // SAFETY: what an `Arc` owns does not move.
        unsafe { Pin::new_unchecked(Arc::new(data)) }
    }

    /// Returns the inner value, if the `Arc` has exactly one strong reference.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        if !shared::take(this.address(), site_of(Location::caller())) {
            return Err(this);
        }
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not dropped, nor used again.
        let value = unsafe { ManuallyDrop::take(&mut this.value) };
        match std::sync::Arc::try_unwrap(value) {
            Ok(value) => Ok(value),
            Err(value) => {
                // Only in an execution that is over can the count be wrong.
                let value = ManuallyDrop::new(value);
                Err(Arc { value })
            }
        }
    }

    /// Returns the inner value, if this is the last `Arc`. Of several that are let go of this way,
    /// exactly one gets the value.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        let site = site_of(Location::caller());
        shared::count(this.address(), MemoryOrder::Relaxed, site);
        let last = shared::decrement(this.address(), site);
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not dropped, nor used again.
        let value = unsafe { ManuallyDrop::take(&mut this.value) };
        match last {
            Last::No => {
                drop(value);
                None
            }
            Last::Yes { guarded } => {
                let value = std::sync::Arc::into_inner(value);
                if guarded {
                    shared::dropped();
                }
                value
            }
        }
    }
}

impl<T> Arc<T> {
    /// Constructs a new `Arc<T>` while giving a [`Weak`] to it to `data_fn`.
    #[track_caller]
    pub fn new_cyclic<F>(data_fn: F) -> Arc<T>
    where
        F: FnOnce(&Weak<T>) -> T,
    {
        let site = site_of(Location::caller());
        let counter = shared::unborn(site);
        let value = std::sync::Arc::new_cyclic(|weak| data_fn(&Weak::of(weak.clone(), counter)));
        let arc = Arc::of_owned(ManuallyDrop::new(value));
        shared::born(counter, arc.address(), site);
        arc
    }
}

impl<T: Clone> Arc<T> {
    /// Returns the inner value, or a clone of it if there are other references.
    #[track_caller]
    pub fn unwrap_or_clone(this: Arc<T>) -> T {
        Arc::try_unwrap(this).unwrap_or_else(|shared| (*shared).clone())
    }

    /// Makes a mutable reference into the value, which is cloned if there are others.
    #[track_caller]
    pub fn make_mut(this: &mut Self) -> &mut T {
        if Arc::get_mut(this).is_none() {
            *this = Arc::new((**this).clone());
        }
        match std::sync::Arc::get_mut(&mut this.value) {
            Some(value) => value,
            None => crate::rt::inconsistent(),
        }
    }
}

impl<T: ?Sized> Arc<T> {
    pub(super) fn of_owned(value: ManuallyDrop<std::sync::Arc<T>>) -> Arc<T> {
        Arc { value }
    }

    /// Creates a new [`Weak`] pointer to this value.
    #[track_caller]
    pub fn downgrade(this: &Self) -> Weak<T> {
        let counter = shared::count_of(this.address());
        Weak::of(std::sync::Arc::downgrade(&this.value), counter)
    }

    fn address(&self) -> usize {
        std::sync::Arc::as_ptr(&self.value).cast::<()>().addr()
    }

    /// Converts a [`std::sync::Arc`]. That is how an `Arc` of an unsized type is made.
    ///
    /// # Panics
    ///
    /// If the provided `Arc` has copies.
    #[track_caller]
    pub fn from_std(mut std: std::sync::Arc<T>) -> Self {
        assert!(
            std::sync::Arc::get_mut(&mut std).is_some(),
            "Arc provided to `from_std` is not unique"
        );
        let value = ManuallyDrop::new(std);
        let arc = Arc { value };
        shared::begin(arc.address(), site_of(Location::caller()));
        arc
    }

    /// Converts the pointer by a coercion of [`std::sync::Arc`], which stable Rust has for no other type.
    ///
    /// ```
    /// use std::fmt::Display;
    /// use selvedge::sync::Arc;
    ///
    /// selvedge::model(|| {
    ///     let text = Arc::new("text");
    ///     let shown = Arc::coerce(Arc::clone(&text), |arc| arc as std::sync::Arc<dyn Display>);
    ///     assert_eq!(shown.to_string(), "text");
    /// });
    /// ```
    ///
    /// # Panics
    ///
    /// If `convert` returns a pointer to something else.
    pub fn coerce<U: ?Sized>(
        this: Self,
        convert: impl FnOnce(std::sync::Arc<T>) -> std::sync::Arc<U>,
    ) -> Arc<U> {
        let address = this.address();
        let mut this = ManuallyDrop::new(this);
        // SAFETY: `this` is not dropped, nor used again.
        let value = convert(unsafe { ManuallyDrop::take(&mut this.value) });
        let arc = Arc::of_owned(ManuallyDrop::new(value));
        assert!(
            arc.address() == address,
            "`coerce` must convert the pointer that it is given"
        );
        arc
    }

    /// Gets the number of strong (`Arc`) pointers to this value.
    #[track_caller]
    pub fn strong_count(this: &Self) -> usize {
        shared::count(
            this.address(),
            MemoryOrder::Relaxed,
            site_of(Location::caller()),
        )
    }

    /// Increments the strong reference count of the `Arc<T>` that the pointer came from.
    ///
    /// # Safety
    ///
    /// The pointer must come from [`Arc::into_raw`], and the count must be at least one during the
    /// call.
    #[track_caller]
    pub unsafe fn increment_strong_count(ptr: *const T) {
        // SAFETY: the caller's promise; neither of the two is dropped.
        let arc = ManuallyDrop::new(unsafe { Arc::<T>::from_raw(ptr) });
        let _clone = ManuallyDrop::new(Arc::clone(&arc));
    }

    /// Decrements the strong reference count of the `Arc<T>` that the pointer came from.
    ///
    /// # Safety
    ///
    /// The pointer must come from [`Arc::into_raw`], and the count must be at least one.
    #[track_caller]
    pub unsafe fn decrement_strong_count(ptr: *const T) {
        // SAFETY: the caller's promise.
        drop(unsafe { Arc::from_raw(ptr) });
    }

    /// Returns a mutable reference to the inner value, if there are no other `Arc`s to it.
    #[track_caller]
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        let site = site_of(Location::caller());
        match shared::count(this.address(), MemoryOrder::Acquire, site) {
            1 => std::sync::Arc::get_mut(&mut this.value),
            _ => None,
        }
    }

    /// Whether the two `Arc`s point to the same value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&this.value, &other.value)
    }

    /// Consumes the `Arc`, returning the wrapped pointer.
    pub fn into_raw(this: Self) -> *const T {
        let pointer = Arc::as_ptr(&this);
        mem::forget(this);
        pointer
    }

    /// Provides a raw pointer to the data.
    pub fn as_ptr(this: &Self) -> *const T {
        std::sync::Arc::as_ptr(&this.value)
    }

    /// Constructs an `Arc` from a raw pointer.
    ///
    /// # Safety
    ///
    /// The pointer must come from [`Arc::into_raw`], and no other `Arc` may be made of it.
    #[track_caller]
    pub unsafe fn from_raw(ptr: *const T) -> Self {
        // SAFETY: `into_raw` gave out the pointer of the inner `Arc`.
        let value = ManuallyDrop::new(unsafe { std::sync::Arc::from_raw(ptr) });
        Arc { value }
    }
}

impl<T: ?Sized> ops::Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Arc<T> {
        shared::increment(self.address(), site_of(Location::caller()));
        Arc {
            value: self.value.clone(),
        }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    #[track_caller]
    fn drop(&mut self) {
        struct Leave(bool);
        impl Drop for Leave {
            fn drop(&mut self) {
                if self.0 {
                    shared::dropped();
                }
            }
        }
        let last = shared::decrement(self.address(), site_of(Location::caller()));
        let _leave = Leave(last == Last::Yes { guarded: true });
        // SAFETY: dropped here and nowhere else.
        unsafe { ManuallyDrop::drop(&mut self.value) };
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Arc<T> {
        Arc::new(Default::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        Arc::new(value)
    }
}

/// Conversions that [`std::sync::Arc`] has, among them those that make an `Arc` of an unsized type.
macro_rules! from {
    ($([$($generics:tt)*] $from:ty => $to:ty;)+) => {
        $(impl<$($generics)*> From<$from> for Arc<$to> {
            #[track_caller]
            fn from(value: $from) -> Self {
                Arc::from_std(std::sync::Arc::from(value))
            }
        })+
    };
}

from! {
    [T: ?Sized] Box<T> => T;
    [T] Vec<T> => [T];
    [T, const N: usize] [T; N] => [T];
    [T: Clone] &[T] => [T];
    [] String => str;
    [] &str => str;
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        Arc::from_std(iter.into_iter().collect())
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: ?Sized + PartialOrd> PartialOrd for Arc<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (**self).partial_cmp(other)
    }
}

impl<T: ?Sized + Ord> Ord for Arc<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(other)
    }
}

impl<T: ?Sized + Hash> Hash for Arc<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (**self).hash(state);
    }
}

impl<T: ?Sized> fmt::Pointer for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Pointer::fmt(&Arc::as_ptr(self), f)
    }
}

impl<T: ?Sized + Error> Error for Arc<T> {}
