//! Threads that wait for one another.

use std::fmt;
use std::panic::Location;

use selvedge_core::objects::{FREE, ObjectFunction, completes, generation};
use selvedge_core::{Function, MemoryOrder};

use crate::rt::{Object, site_of};

/// As [`std::sync::Barrier`].
pub struct Barrier {
    object: Object,
    parties: u32,
}

/// The result of [`Barrier::wait`] when all threads have met.
#[derive(Debug)]
pub struct BarrierWaitResult(bool);

impl Barrier {
    /// Creates a new barrier that can block a given number of threads.
    #[track_caller]
    pub fn new(n: usize) -> Self {
        Barrier {
            object: Object::new("Barrier", FREE, site_of(Location::caller())),
            parties: n as u32,
        }
    }

    /// Blocks the current thread until all threads have met here.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        let site = site_of(Location::caller());
        let parties = self.parties;
        let arrive = Function::Object(ObjectFunction::BarrierArrive { parties });
        let order = MemoryOrder::AcqRel;
        let state = self.object.update(arrive, order, order, site).read;
        if completes(state, parties) {
            return BarrierWaitResult(true);
        }
        let generation = generation(state);
        let pass = Function::Object(ObjectFunction::BarrierAwait { generation });
        let acquire = MemoryOrder::Acquire;
        self.object.update(pass, acquire, acquire, site);
        BarrierWaitResult(false)
    }
}

impl BarrierWaitResult {
    /// Whether this thread was the last to arrive.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
