//! Condition variables.

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, PoisonError};
use std::time::Duration;

use selvedge_core::objects::{CONDITION_SLOTS, FREE, ObjectFunction, free_slot, was_woken};
use selvedge_core::{Function, MemoryOrder, Outcome, Site};

use super::MutexGuard;
use crate::rt::{self, Object, host, site_of};

/// As [`std::sync::Condvar`]. Nobody is woken without a notification, unless
/// [`Builder::spurious_wakeups`](crate::model::Builder::spurious_wakeups) says so.
pub struct Condvar {
    object: Object,
}

/// Whether a timed wait returned because of a time-out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WaitTimeoutResult(bool);

impl Condvar {
    /// Creates a new condition variable which is ready to be waited on and notified.
    #[track_caller]
    pub fn new() -> Condvar {
        Condvar {
            object: Object::new("Condvar", FREE, site_of(Location::caller())),
        }
    }

    /// Waits until this condition variable receives a notification.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let site = site_of(Location::caller());
        self.wait_until(guard, false, site).0
    }

    /// Waits as long as `condition` says so.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        let site = site_of(Location::caller());
        while condition(&mut *guard) {
            guard = self.wait_until(guard, false, site).0?;
        }
        Ok(guard)
    }

    /// Waits for a notification or a time-out. Time does not pass in a model: that the wait times
    /// out, as soon as it begins or at any later point, is explored within
    /// [`Builder::max_timeouts`](crate::model::Builder::max_timeouts).
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        _dur: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let site = site_of(Location::caller());
        let timed = host(|state| state.begin_timed_wait());
        let (guard, woken) = self.wait_until(guard, timed, site);
        let result = WaitTimeoutResult(!woken);
        match guard {
            Ok(guard) => Ok((guard, result)),
            Err(poisoned) => Err(PoisonError::new((poisoned.into_inner(), result))),
        }
    }

    /// Waits for a notification or a time-out, as long as `condition` says so.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        dur: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        let mut timed_out = false;
        while condition(&mut *guard) {
            if timed_out {
                return Ok((guard, WaitTimeoutResult(true)));
            }
            let result;
            (guard, result) = self.wait_timeout(guard, dur)?;
            timed_out = result.timed_out();
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    fn wait_until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timed: bool,
        site: Site,
    ) -> (LockResult<MutexGuard<'a, T>>, bool) {
        let mutex = guard.mutex;
        let before = self.step(ObjectFunction::ConditionEnqueue, MemoryOrder::Relaxed, site);
        let Some(slot) = free_slot(before.read) else {
            rt::refuse(&format!(
                "more than {CONDITION_SLOTS} threads wait on one Condvar"
            ));
        };
        drop(guard);
        let function = if timed || rt::wakes_spuriously(site) {
            ObjectFunction::ConditionLeave { slot }
        } else {
            ObjectFunction::ConditionAwait { slot }
        };
        let left = self.step(function, MemoryOrder::Acquire, site);
        host(|state| state.end_timed_wait(timed && !was_woken(left.read, slot)));
        (mutex.acquire(site), was_woken(left.read, slot))
    }

    /// Wakes up one blocked thread on this condition variable, any of them.
    #[track_caller]
    pub fn notify_one(&self) {
        let site = site_of(Location::caller());
        self.step(ObjectFunction::ConditionSignal, MemoryOrder::Release, site);
    }

    /// Wakes up all blocked threads on this condition variable.
    #[track_caller]
    pub fn notify_all(&self) {
        let site = site_of(Location::caller());
        self.step(
            ObjectFunction::ConditionBroadcast,
            MemoryOrder::Release,
            site,
        );
    }

    fn step(&self, function: ObjectFunction, order: MemoryOrder, site: Site) -> Outcome {
        let function = Function::Object(function);
        self.object
            .update(function, order, MemoryOrder::Relaxed, site)
    }
}

impl WaitTimeoutResult {
    /// Whether the wait was known to have timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Self {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
