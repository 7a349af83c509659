//! Code that all locks and guards share.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt;

/// Applies `guard` to the lock of the standard library, which is free: the object beside it has
/// decided so.
pub(super) fn guarded<S, G>(data: TryLockResult<S>, guard: impl Fn(S) -> G) -> LockResult<G> {
    match data {
        Ok(data) => Ok(guard(data)),
        Err(TryLockError::Poisoned(data)) => Err(PoisonError::new(guard(data.into_inner()))),
        Err(TryLockError::WouldBlock) => rt::inconsistent(),
    }
}

/// The result of trying to get a lock, which `succeeded` or not.
pub(super) fn tried<G>(succeeded: bool, guard: impl FnOnce() -> LockResult<G>) -> TryLockResult<G> {
    match succeeded {
        true => guard().map_err(TryLockError::Poisoned),
        false => Err(TryLockError::WouldBlock),
    }
}

/// The methods of a lock that only use its contents.
macro_rules! lock_contents {
    ($lock:ident) => {
        impl<T> $lock<T> {
            /// Consumes this lock, returning the underlying data.
            pub fn into_inner(self) -> LockResult<T> {
                self.data.into_inner()
            }
        }

        impl<T: ?Sized> $lock<T> {
            /// Returns a mutable reference to the underlying data.
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                self.data.get_mut()
            }

            /// Whether a thread panicked while it could change the data.
            pub fn is_poisoned(&self) -> bool {
                self.data.is_poisoned()
            }

            /// Forgets that a thread panicked.
            pub fn clear_poison(&self) {
                self.data.clear_poison();
            }
        }
    };
}

/// The traits of a lock that is made of its contents.
macro_rules! lock_traits {
    ($lock:ident) => {
        $crate::sync::guards::lock_contents!($lock);

        impl<T: Default> Default for $lock<T> {
            #[track_caller]
            fn default() -> Self {
                $lock::new(Default::default())
            }
        }

        impl<T> From<T> for $lock<T> {
            #[track_caller]
            fn from(data: T) -> Self {
                $lock::new(data)
            }
        }

        impl<T: ?Sized> std::fmt::Debug for $lock<T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($lock)).finish_non_exhaustive()
            }
        }
    };
}

/// The traits of a guard whose `data` is there until it is dropped.
macro_rules! guard_traits {
    ($guard:ident) => {
        impl<T: ?Sized> std::ops::Deref for $guard<'_, T> {
            type Target = T;

            fn deref(&self) -> &T {
                match &self.data {
                    Some(data) => data,
                    None => unreachable!("it is there until the guard is dropped"),
                }
            }
        }

        impl<T: ?Sized + std::fmt::Debug> std::fmt::Debug for $guard<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }
    };
    (mutable $guard:ident) => {
        impl<T: ?Sized> std::ops::DerefMut for $guard<'_, T> {
            fn deref_mut(&mut self) -> &mut T {
                match &mut self.data {
                    Some(data) => data,
                    None => unreachable!("it is there until the guard is dropped"),
                }
            }
        }
    };
}

pub(super) use {guard_traits, lock_contents, lock_traits};
