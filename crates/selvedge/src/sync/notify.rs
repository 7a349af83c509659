//! One thread waits, others notify it.

use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Op, Site, Width};

use crate::rt::{Object, site_of, visible, wakes_spuriously};

/// loom's direct way to wait for and give a notification, which synchronises the two.
///
/// A wait does not return without a notification, unless
/// [`Builder::spurious_wakeups`](crate::model::Builder::spurious_wakeups) says so. (In loom it
/// does, but only after others have run.)
#[derive(Debug)]
pub struct Notify {
    object: Object,
    /// There is one waiter at a time.
    waiting: AtomicBool,
    /// [`wait_or_wake`](Notify::wait_or_wake) has returned without a notification.
    woke: AtomicBool,
}

impl Notify {
    /// Creates a new `Notify`.
    #[track_caller]
    pub fn new() -> Notify {
        Notify {
            object: Object::new("Notify", FREE, site_of(Location::caller())),
            waiting: AtomicBool::new(false),
            woke: AtomicBool::new(false),
        }
    }

    /// Notifies the waiter.
    #[track_caller]
    pub fn notify(&self) {
        self.notify_at(site_of(Location::caller()));
    }

    pub(crate) fn notify_at(&self, site: Site) {
        let function = Function::memory(Width(1), Rmw::Or(1));
        let release = MemoryOrder::Release;
        self.object.update(function, release, release, site);
    }

    /// Waits for a notification.
    ///
    /// # Panics
    ///
    /// If another thread waits.
    #[track_caller]
    pub fn wait(&self) {
        assert!(
            !self.waiting.swap(true, SeqCst),
            "only a single thread may wait on `Notify`"
        );
        let site = site_of(Location::caller());
        if !wakes_spuriously(site) {
            self.wait_at(site);
        }
        self.waiting.store(false, SeqCst);
    }

    /// The same, or returns right away, once.
    pub(crate) fn wait_or_wake(&self, site: Site) {
        if !self.woke.load(SeqCst) && visible(Op::Choose { alternatives: 2 }, site).read == 1 {
            self.woke.store(true, SeqCst);
            return;
        }
        self.wait_at(site);
    }

    fn wait_at(&self, site: Site) {
        let function = Function::Object(ObjectFunction::SemaphoreWait);
        let acquire = MemoryOrder::Acquire;
        self.object.update(function, acquire, acquire, site);
    }
}

impl Default for Notify {
    #[track_caller]
    fn default() -> Self {
        Notify::new()
    }
}
