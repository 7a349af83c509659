//! Values that belong to a thread or to an execution.

use std::any::Any;
use std::ptr::NonNull;

use selvedge_core::Site;

use super::state::State;
use super::thread::Local;

impl State {
    /// The value of the lazy static at `address`.
    pub(crate) fn static_value(&mut self, address: usize) -> Option<NonNull<()>> {
        let mut statics = self.statics.iter_mut();
        let found = statics.find(|known| known.0 == address)?;
        Some(NonNull::from(&mut *found.1).cast())
    }

    /// Gives the lazy static at `address` a value.
    pub(crate) fn set_static(&mut self, address: usize, value: Box<dyn Any>) {
        self.statics.push((address, value));
    }

    /// Something begins its life at `key` that must come to an end.
    pub(crate) fn track(&mut self, key: usize, what: &'static str, site: Site) {
        self.tracked.insert(key, (what, site));
    }

    /// The same for something without an address. Returns its key.
    pub(crate) fn track_value(&mut self, site: Site) -> usize {
        self.marks += 1;
        // No block of memory begins at an odd address.
        let key = 2 * self.marks + 1;
        self.track(key, "tracked value", site);
        key
    }

    /// The end of what lives at `key`.
    pub(crate) fn untrack(&mut self, key: usize) {
        self.tracked.remove(&key);
    }

    /// Whether a wait of the running thread may end without a reason.
    pub(super) fn may_wake(&self) -> bool {
        self.limits.spurious.wakeups && !self.threads[self.running].woke
    }

    /// A wait of the running thread ends without a reason.
    pub(super) fn wakes(&mut self) {
        self.current().woke = true;
    }

    /// Whether the weak compare-exchange at `site`, which the running thread is about to perform,
    /// may fail without a reason. In a loop that changes nothing that would be the same each time.
    pub(super) fn may_miss(&self, site: Site) -> bool {
        let thread = &self.threads[self.running];
        self.limits.spurious.failures && !thread.missed && !thread.spin.was_at(site.0)
    }

    /// A weak compare-exchange of the running thread fails without a reason.
    pub(super) fn misses(&mut self) {
        self.current().missed = true;
    }

    /// The running thread begins a timed wait. Whether that may time out; if not, never going on
    /// from it is no deadlock.
    pub(crate) fn begin_timed_wait(&mut self) -> bool {
        let most = self.limits.spurious.timeouts;
        let thread = self.current();
        thread.waits_in_time = thread.timeouts >= most;
        !thread.waits_in_time
    }

    /// The end of that wait.
    pub(crate) fn end_timed_wait(&mut self, timed_out: bool) {
        let thread = self.current();
        thread.waits_in_time = false;
        thread.timeouts += usize::from(timed_out);
    }

    /// The name of the running thread.
    pub(crate) fn running_name(&self) -> Option<String> {
        self.threads[self.running].name.clone()
    }

    /// The thread-local value of the running thread with this key; an error if it was destroyed.
    pub(crate) fn local(&mut self, key: usize) -> Result<Option<NonNull<()>>, ()> {
        let mut locals = self.current().locals.iter_mut();
        match locals.find(|local| local.0 == key) {
            None => Ok(None),
            Some((_, Local::Destroyed)) => Err(()),
            Some((_, Local::Value(value))) => Ok(Some(NonNull::from(&mut **value).cast())),
        }
    }

    /// Gives the running thread a thread-local value.
    pub(crate) fn set_local(&mut self, key: usize, value: Box<dyn Any>) {
        self.current().locals.push((key, Local::Value(value)));
    }
}
