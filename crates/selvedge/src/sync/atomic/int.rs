//! Atomic integers.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Value, Width};

use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, site_of};

macro_rules! atomic_int {
    ($name:ident, $int:ty, $unsigned:ty, $max:ident, $min:ident) => {
        #[doc = concat!("As [`std::sync::atomic::", stringify!($name), "`].")]
        pub struct $name(Object, Slot<$int>);

        impl $name {
            const WIDTH: Width = Width(size_of::<$int>() as u8);

            /// Creates a new instance.
            #[track_caller]
            pub fn new(v: $int) -> Self {
                let site = site_of(Location::caller());
                $name(
                    Object::new(stringify!($name), Self::value(v), site),
                    Slot::new(),
                )
            }

            fn value(v: $int) -> Value {
                (v as $unsigned) as Value
            }

            fn int(value: Value) -> $int {
                value as $int
            }

            #[inline(always)]
            #[track_caller]
            fn object(&self) -> &Object {
                if let Some(v) = self.1.take_back() {
                    self.0
                        .begin_with(Self::value(v), site_of(Location::caller()));
                }
                &self.0
            }

            /// Returns a mutable reference to the underlying integer.
            #[track_caller]
            pub fn get_mut(&mut self) -> &mut $int {
                let site = site_of(Location::caller());
                let value = self.object().plain(AccessKind::Write, site);
                self.0 = Object::new(stringify!($name), value, site);
                self.1.lend(Self::int(value))
            }

            /// Gets access to a mutable reference to the inner value.
            #[track_caller]
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $int) -> R) -> R {
                let site = site_of(Location::caller());
                let before = Self::int(self.object().plain(AccessKind::Write, site));
                let mut inner = before;
                let result = f(&mut inner);
                if inner != before {
                    self.object().replace(Self::value(inner), site);
                }
                result
            }

            /// Loads the value without any synchronisation.
            ///
            /// # Safety
            ///
            /// No other thread may write at the same time. Such a race is reported.
            #[track_caller]
            pub unsafe fn unsync_load(&self) -> $int {
                let site = site_of(Location::caller());
                Self::int(self.object().plain(AccessKind::Read, site))
            }

            /// Consumes the atomic and returns the contained value.
            #[track_caller]
            pub fn into_inner(self) -> $int {
                let site = site_of(Location::caller());
                Self::int(self.object().plain(AccessKind::Read, site))
            }

            /// Loads a value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $int {
                Self::int(load(self.object(), order))
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, val: $int, order: Ordering) {
                store(self.object(), Self::value(val), order);
            }

            /// Stores a value, returning the previous value.
            #[track_caller]
            pub fn swap(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Exchange(Self::value(val)), order)
            }

            /// Stores a value if the current value is the same as `current`.
            #[track_caller]
            pub fn compare_and_swap(&self, current: $int, new: $int, order: Ordering) -> $int {
                match self.compare_exchange(current, new, order, failure_of(order)) {
                    Ok(old) | Err(old) => old,
                }
            }

            /// Stores a value if the current value is the same as `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                let values = (Self::value(current), Self::value(new));
                let outcome =
                    compare_exchange(self.object(), Self::WIDTH, values, success, failure);
                match outcome.wrote {
                    Some(_) => Ok(current),
                    None => Err(Self::int(outcome.read)),
                }
            }

            /// The same, and may fail for no reason if
            /// [`Builder::spurious_failures`](crate::model::Builder::spurious_failures) says so.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $int,
                new: $int,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$int, $int> {
                if misses() {
                    return missed(current, self.load(failure));
                }
                self.compare_exchange(current, new, success, failure)
            }

            /// Adds to the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_add(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Add(Self::value(val)), order)
            }

            /// Subtracts from the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_sub(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Sub(Self::value(val)), order)
            }

            /// Bitwise "and" with the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_and(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::And(Self::value(val)), order)
            }

            /// Bitwise "nand" with the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_nand(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Nand(Self::value(val)), order)
            }

            /// Bitwise "or" with the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_or(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Or(Self::value(val)), order)
            }

            /// Bitwise "xor" with the current value, returning the previous value.
            #[track_caller]
            pub fn fetch_xor(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::Xor(Self::value(val)), order)
            }

            /// Stores the maximum of the current and the provided value, returning the previous value.
            #[track_caller]
            pub fn fetch_max(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::$max(Self::value(val)), order)
            }

            /// Stores the minimum of the current and the provided value, returning the previous value.
            #[track_caller]
            pub fn fetch_min(&self, val: $int, order: Ordering) -> $int {
                self.rmw(Rmw::$min(Self::value(val)), order)
            }

            /// Fetches the value, and applies a function to it that returns an optional new value.
            #[track_caller]
            pub fn fetch_update<F>(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: F,
            ) -> Result<$int, $int>
            where
                F: FnMut($int) -> Option<$int>,
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

            #[track_caller]
            fn rmw(&self, function: Rmw, order: Ordering) -> $int {
                Self::int(rmw(self.object(), Self::WIDTH, function, order))
            }
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(Default::default())
            }
        }

        impl From<$int> for $name {
            #[track_caller]
            fn from(v: $int) -> Self {
                Self::new(v)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

atomic_int!(AtomicU8, u8, u8, UMax, UMin);
atomic_int!(AtomicU16, u16, u16, UMax, UMin);
atomic_int!(AtomicU32, u32, u32, UMax, UMin);
atomic_int!(AtomicU64, u64, u64, UMax, UMin);
atomic_int!(AtomicI8, i8, u8, Max, Min);
atomic_int!(AtomicI16, i16, u16, Max, Min);
atomic_int!(AtomicI32, i32, u32, Max, Min);
atomic_int!(AtomicI64, i64, u64, Max, Min);

atomic_int!(AtomicUsize, usize, usize, UMax, UMin);
atomic_int!(AtomicIsize, isize, usize, Max, Min);
