//! Statics that are made anew in each execution. See [`lazy_static!`](crate::lazy_static!).

use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;
use std::ptr::NonNull;

use selvedge_core::objects::{DONE, ObjectFunction};
use selvedge_core::{Function, MemoryOrder};

use crate::rt::{self, Object, host, site_of};
pub use crate::thread::AccessError;

/// The static behind a [`lazy_static!`](crate::lazy_static!): made by the first thread that asks
/// for it, while others wait, and dropped at the end of the execution.
pub struct Lazy<T> {
    #[doc(hidden)]
    pub init: fn() -> T,
    #[doc(hidden)]
    pub _p: PhantomData<fn(T)>,
}

impl<T: 'static> Lazy<T> {
    /// Returns a reference to the value, which must not be used when the execution is over.
    #[track_caller]
    pub fn get(&'static self) -> &'static T {
        let site = site_of(Location::caller());
        let address = std::ptr::from_ref(self).addr();
        let once = Object::of_static("lazy static", address, site);
        let begin = Function::Object(ObjectFunction::OnceBegin);
        let acquire = MemoryOrder::Acquire;
        if once.update(begin, acquire, acquire, site).wrote.is_some() {
            let value = Box::new((self.init)());
            host(|state| state.set_static(address, value));
            once.store(DONE, MemoryOrder::Release, site);
        }
        let value: Option<NonNull<T>> =
            host(|state| state.static_value(address)).map(NonNull::cast);
        match value {
            // SAFETY: boxed, and dropped only when the execution is over.
            Some(value) => unsafe { value.as_ref() },
            None => rt::inconsistent(),
        }
    }
}

impl<T: 'static> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").finish_non_exhaustive()
    }
}
