//! Code that all locks and guards share.

use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};

use crate::rt;

/// Applies `guard` to the lock of the standard library, which is free: the object beside it has
/// decided so.
///
/// The lock of the standard library knows whether it is poisoned, unless the program has asked for that without
/// holding the lock: then `poison` knows.
pub(super) fn guarded<S, G>(
    poison: Option<bool>,
    data: TryLockResult<S>,
    guard: impl Fn(S) -> G,
) -> LockResult<G> {
    match data {
        Ok(data) => poisoned(poison.unwrap_or(false), guard(data)),
        Err(TryLockError::Poisoned(data)) => {
            poisoned(poison.unwrap_or(true), guard(data.into_inner()))
        }
        Err(TryLockError::WouldBlock) => rt::inconsistent(),
    }
}

/// The result of a lock that may be poisoned.
pub(super) fn poisoned<G>(is_poisoned: bool, given: G) -> LockResult<G> {
    match is_poisoned {
        true => Err(PoisonError::new(given)),
        false => Ok(given),
    }
}

/// Gives `data` back to a lock of the standard library, which a thread that panics poisons.
macro_rules! give_back {
    ($lock:expr, $data:expr, $site:expr) => {
        // Poison that is found afterwards is then due to this thread.
        if $lock.poison.is_visible() {
            $lock.data.clear_poison();
        }
        drop($data);
        if $lock.data.is_poisoned() {
            let order = selvedge_core::MemoryOrder::Relaxed;
            $lock.poison.set(true, order, $site);
        }
    };
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
            #[track_caller]
            pub fn into_inner(self) -> LockResult<T> {
                let site = $crate::rt::site_of(std::panic::Location::caller());
                let poison = self.poison.get(site);
                let data = self.data.into_inner();
                let is_poisoned = poison.unwrap_or(data.is_err());
                let data = data.unwrap_or_else(std::sync::PoisonError::into_inner);
                $crate::sync::guards::poisoned(is_poisoned, data)
            }
        }

        impl<T: ?Sized> $lock<T> {
            /// Returns a mutable reference to the underlying data.
            #[track_caller]
            pub fn get_mut(&mut self) -> LockResult<&mut T> {
                let site = $crate::rt::site_of(std::panic::Location::caller());
                let poison = self.poison.get(site);
                let data = self.data.get_mut();
                let is_poisoned = poison.unwrap_or(data.is_err());
                let data = data.unwrap_or_else(std::sync::PoisonError::into_inner);
                $crate::sync::guards::poisoned(is_poisoned, data)
            }

            /// Whether a thread panicked while it could change the data. Costs executions only if it is
            /// called.
            #[track_caller]
            pub fn is_poisoned(&self) -> bool {
                let site = $crate::rt::site_of(std::panic::Location::caller());
                self.poison
                    .ask(site)
                    .unwrap_or_else(|| self.data.is_poisoned())
            }

            /// Forgets that a thread panicked. Costs executions only if it is called.
            #[track_caller]
            pub fn clear_poison(&self) {
                let site = $crate::rt::site_of(std::panic::Location::caller());
                self.poison.ask(site);
                let order = selvedge_core::MemoryOrder::Relaxed;
                self.poison.set(false, order, site);
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

pub(super) use {give_back, guard_traits, lock_contents, lock_traits};
