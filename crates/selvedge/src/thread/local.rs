//! Thread-local values.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::rt::host;

/// A thread-local key, made with [`thread_local!`](crate::thread_local!).
pub struct LocalKey<T> {
    #[doc(hidden)]
    pub init: fn() -> T,
    #[doc(hidden)]
    pub _p: PhantomData<fn(T)>,
}

/// An error returned by [`LocalKey::try_with`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError {
    pub(crate) _private: (),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("already destroyed")
    }
}

impl Error for AccessError {}

impl<T: 'static> LocalKey<T> {
    /// Acquires a reference to the value in this key, which each thread makes when it first asks
    /// for it.
    ///
    /// # Panics
    ///
    /// If the value of this thread was destroyed.
    #[track_caller]
    pub fn with<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        match self.try_with(f) {
            Ok(result) => result,
            Err(_) => panic!("cannot access a thread-local value during or after its destruction"),
        }
    }

    /// The same, as a value where [`with`](LocalKey::with) panics.
    #[track_caller]
    pub fn try_with<F, R>(&'static self, f: F) -> Result<R, AccessError>
    where
        F: FnOnce(&T) -> R,
    {
        let value = match self.find()? {
            Some(value) => value,
            None => {
                let value = Box::new((self.init)());
                host(|state| state.set_local(self.key(), value));
                self.find()?.ok_or(AccessError { _private: () })?
            }
        };
        // SAFETY: a thread's values are boxed, and dropped only at its end, when `f` has returned.
        Ok(f(unsafe { value.as_ref() }))
    }

    fn key(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn find(&'static self) -> Result<Option<NonNull<T>>, AccessError> {
        host(|state| state.local(self.key()))
            .map(|value| value.map(NonNull::cast))
            .map_err(|()| AccessError { _private: () })
    }
}

impl<T: 'static> LocalKey<Cell<T>> {
    /// Sets the contained value.
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// Returns a copy of the contained value.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(Cell::get)
    }

    /// Takes the contained value, leaving the default in its place.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(Cell::take)
    }

    /// Replaces the contained value, returning the old one.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<RefCell<T>> {
    /// Borrows the contained value.
    #[track_caller]
    pub fn with_borrow<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&T) -> R,
    {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Borrows the contained value mutably.
    #[track_caller]
    pub fn with_borrow_mut<F, R>(&'static self, f: F) -> R
    where
        F: FnOnce(&mut T) -> R,
    {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Sets the contained value.
    #[track_caller]
    pub fn set(&'static self, value: T) {
        self.with(|cell| drop(cell.replace(value)));
    }

    /// Takes the contained value, leaving the default in its place.
    #[track_caller]
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(RefCell::take)
    }

    /// Replaces the contained value, returning the old one.
    #[track_caller]
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}
