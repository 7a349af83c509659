//! Atomic pointers.

use std::fmt;
use std::panic::Location;

use selvedge_core::op::Rmw;
use selvedge_core::{Site, Value, Width};

use super::operations::operations;
use super::{Ordering, compare_exchange, failure_of, load, missed, misses, rmw, store};
use crate::rt::{AccessKind, Object, Slot, host, site_of};

/// As [`std::sync::atomic::AtomicPtr`].
pub struct AtomicPtr<T> {
    object: Object,
    slot: Slot<*mut T>,
}

// SAFETY: all it holds is the name of a location, which any thread may access.
unsafe impl<T> Send for AtomicPtr<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for AtomicPtr<T> {}

operations!(AtomicPtr<T>, *mut T, std::ptr::null_mut());

impl<T> AtomicPtr<T> {
    /// A pointer is presented to the explorer as a block and an offset, which takes more than its own
    /// eight bytes.
    const WIDTH: Width = Width(16);

    fn begin(v: *mut T, site: Site) -> Object {
        Object::of_pointer("AtomicPtr", v.expose_provenance(), site)
    }

    fn value(pointer: *mut T) -> Value {
        let address = pointer.expose_provenance();
        host(|state| state.value_of(address))
    }

    fn inner(value: Value) -> *mut T {
        let address = host(|state| state.address_of(value));
        std::ptr::with_exposed_provenance_mut(address)
    }
}
