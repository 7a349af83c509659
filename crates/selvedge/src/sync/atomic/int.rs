//! Atomic integers.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Site, Value, Width};

use super::operations::operations;
use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, site_of};

macro_rules! atomic_int {
    ($name:ident, $int:ty, $unsigned:ty, $max:ident, $min:ident) => {
        #[doc = concat!("As [`std::sync::atomic::", stringify!($name), "`].")]
        pub struct $name {
            object: Object,
            slot: Slot<$int>,
        }

        operations!($name, $int, 0);

        impl $name {
            const WIDTH: Width = Width(size_of::<$int>() as u8);

            fn begin(v: $int, site: Site) -> Object {
                Object::new(stringify!($name), Self::value(v), site)
            }

            fn value(v: $int) -> Value {
                (v as $unsigned) as Value
            }

            fn inner(value: Value) -> $int {
                value as $int
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
