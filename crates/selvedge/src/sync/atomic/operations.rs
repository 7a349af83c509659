//! The operations that all atomics have.

/// Implements them for a type with the fields `object` and `slot`, the constant `WIDTH`, and the functions
/// `begin` (a new object), `value` and `inner` (the conversions).
macro_rules! operations {
    ($name:ident $(<$t:ident>)?, $inner:ty, $default:expr) => {
        impl $(<$t>)? $name $(<$t>)? {
            #[doc = concat!("Creates a new `", stringify!($name), "`.")]
            #[track_caller]
            pub fn new(v: $inner) -> Self {
                $name {
                    object: Self::begin(v, site_of(Location::caller())),
                    slot: Slot::new(),
                }
            }

            #[inline(always)]
            #[track_caller]
            fn object(&self) -> &Object {
                if let Some(v) = self.slot.take_back() {
                    let value = Self::value(v);
                    self.object.begin_with(value, site_of(Location::caller()));
                }
                &self.object
            }

            #[track_caller]
            fn plain(&self, kind: AccessKind) -> $inner {
                let site = site_of(Location::caller());
                Self::inner(self.object().plain(kind, site))
            }

            /// Returns a mutable reference to the underlying value.
            #[track_caller]
            pub fn get_mut(&mut self) -> &mut $inner {
                let before = self.plain(AccessKind::Write);
                self.object = Self::begin(before, site_of(Location::caller()));
                self.slot.lend(before)
            }

            /// Gets access to a mutable reference to the inner value.
            #[track_caller]
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $inner) -> R) -> R {
                let before = self.plain(AccessKind::Write);
                let mut inner = before;
                let result = f(&mut inner);
                if inner != before {
                    let site = site_of(Location::caller());
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
            pub unsafe fn unsync_load(&self) -> $inner {
                self.plain(AccessKind::Read)
            }

            /// Consumes the atomic and returns the contained value.
            #[track_caller]
            pub fn into_inner(self) -> $inner {
                self.plain(AccessKind::Read)
            }

            /// Loads a value.
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $inner {
                Self::inner(load(self.object(), order))
            }

            /// Stores a value.
            #[track_caller]
            pub fn store(&self, val: $inner, order: Ordering) {
                store(self.object(), Self::value(val), order);
            }

            /// Stores a value, returning the previous value.
            #[track_caller]
            pub fn swap(&self, val: $inner, order: Ordering) -> $inner {
                self.rmw(Rmw::Exchange(Self::value(val)), order)
            }

            /// Stores a value if the current value is the same as `current`.
            #[track_caller]
            pub fn compare_and_swap(
                &self,
                current: $inner,
                new: $inner,
                order: Ordering,
            ) -> $inner {
                match self.compare_exchange(current, new, order, failure_of(order)) {
                    Ok(old) | Err(old) => old,
                }
            }

            /// Stores a value if the current value is the same as `current`.
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $inner,
                new: $inner,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$inner, $inner> {
                let values = (Self::value(current), Self::value(new));
                let outcome =
                    compare_exchange(self.object(), Self::WIDTH, values, success, failure);
                match outcome.wrote {
                    Some(_) => Ok(current),
                    None => Err(Self::inner(outcome.read)),
                }
            }

            /// The same, and may fail for no reason if
            /// [`Builder::spurious_failures`](crate::model::Builder::spurious_failures) says so.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $inner,
                new: $inner,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$inner, $inner> {
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
            ) -> Result<$inner, $inner>
            where
                F: FnMut($inner) -> Option<$inner>,
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

            /// The same as [`fetch_update`](Self::fetch_update).
            #[track_caller]
            pub fn try_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                f: impl FnMut($inner) -> Option<$inner>,
            ) -> Result<$inner, $inner> {
                self.fetch_update(set_order, fetch_order, f)
            }

            /// Applies a function to the value, and returns what it was before.
            #[track_caller]
            pub fn update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($inner) -> $inner,
            ) -> $inner {
                match self.fetch_update(set_order, fetch_order, |value| Some(f(value))) {
                    Ok(before) | Err(before) => before,
                }
            }

            #[track_caller]
            fn rmw(&self, function: Rmw, order: Ordering) -> $inner {
                Self::inner(rmw(self.object(), Self::WIDTH, function, order))
            }
        }

        impl $(<$t>)? Default for $name $(<$t>)? {
            #[track_caller]
            fn default() -> Self {
                Self::new($default)
            }
        }

        impl $(<$t>)? From<$inner> for $name $(<$t>)? {
            #[track_caller]
            fn from(v: $inner) -> Self {
                Self::new(v)
            }
        }

        impl $(<$t>)? fmt::Debug for $name $(<$t>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    };
}

pub(super) use operations;
