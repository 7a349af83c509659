//! Functions by which a model asks the search itself; loom has nothing like them.

use std::panic::Location;

use selvedge_core::Op;

use crate::rt::{self, site_of, visible};

/// Picks a number below `alternatives`. Every one of them is explored.
///
/// ```
/// selvedge::model(|| {
///     let coin = selvedge::explore::choose(2);
///     assert!(coin == 0 || coin == 1);
/// });
/// ```
///
/// # Panics
///
/// If there are no alternatives.
#[track_caller]
pub fn choose(alternatives: u32) -> u32 {
    assert!(alternatives > 0, "there must be something to choose from");
    visible(Op::Choose { alternatives }, site_of(Location::caller())).read as u32
}

/// Gives up the execution unless `condition` holds: it is of no interest.
///
/// ```
/// selvedge::model(|| {
///     let (a, b) = (selvedge::explore::choose(3), selvedge::explore::choose(3));
///     selvedge::explore::assume(a != b);
///     assert!(a + b < 4);
/// });
/// ```
pub fn assume(condition: bool) {
    if !condition {
        rt::assume_nothing();
    }
}

/// Visible operations as the core knows them, for tests of this crate.
#[doc(hidden)]
pub mod raw {
    use std::panic::Location;

    use selvedge_core::{Function, MemoryOrder, Op, Value};

    use crate::rt::{self, site_of, visible};

    /// A location.
    #[derive(Debug)]
    pub struct Object(rt::Object);

    impl Object {
        /// A location with this value.
        #[track_caller]
        pub fn new(initial: Value) -> Object {
            Object(rt::Object::new(
                "object",
                initial,
                site_of(Location::caller()),
            ))
        }

        /// Loads it.
        #[track_caller]
        pub fn load(&self, order: MemoryOrder) -> Value {
            self.0.load(order, site_of(Location::caller()))
        }

        /// Stores to it.
        #[track_caller]
        pub fn store(&self, value: Value, order: MemoryOrder) {
            self.0.store(value, order, site_of(Location::caller()));
        }

        /// Updates it.
        #[track_caller]
        pub fn update(
            &self,
            function: Function,
            order: MemoryOrder,
            failure: MemoryOrder,
        ) -> Value {
            let site = site_of(Location::caller());
            self.0.update(function, order, failure, site).read
        }
    }

    /// A fence.
    #[track_caller]
    pub fn fence(order: MemoryOrder) {
        visible(Op::Fence { order }, site_of(Location::caller()));
    }
}
