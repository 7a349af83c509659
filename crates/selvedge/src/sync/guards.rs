//! What all locks and all guards have in common.

/// The traits of a lock that is made of its contents.
macro_rules! lock_traits {
    ($lock:ident) => {
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

pub(super) use {guard_traits, lock_traits};
