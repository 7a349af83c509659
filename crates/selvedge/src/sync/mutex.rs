//! Mutual exclusion.

use std::fmt;
use std::panic::Location;
use std::sync::{LockResult, Mutex as StdMutex, MutexGuard as StdGuard, TryLockResult};

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::{Function, MemoryOrder, Site};

use super::guards::{give_back, guard_traits, guarded, lock_traits, tried};
use crate::rt::shared::Flag;
use crate::rt::{self, Object, host, site_of};

/// As [`std::sync::Mutex`].
pub struct Mutex<T: ?Sized> {
    object: Object,
    poison: Flag,
    /// Never waited for: the object decides which thread may have it.
    data: StdMutex<T>,
}

/// The lock of a [`Mutex`], which is given back when this is dropped.
pub struct MutexGuard<'a, T: ?Sized> {
    pub(super) mutex: &'a Mutex<T>,
    /// There until it is dropped.
    data: Option<StdGuard<'a, T>>,
    site: Site,
}

impl<T> Mutex<T> {
    /// Creates a new mutex in an unlocked state.
    #[track_caller]
    pub fn new(data: T) -> Mutex<T> {
        let site = site_of(Location::caller());
        Mutex {
            object: Object::new("Mutex", FREE, site),
            poison: Flag::new("poison of a Mutex", site),
            data: StdMutex::new(data),
        }
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Acquires the mutex, waiting until it is able to do so.
    #[track_caller]
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        self.acquire(site_of(Location::caller()))
    }

    pub(super) fn acquire(&self, site: Site) -> LockResult<MutexGuard<'_, T>> {
        let owner = host(|state| state.running());
        let function = Function::Object(ObjectFunction::MutexLock { owner });
        let (acquire, relaxed) = (MemoryOrder::Acquire, MemoryOrder::Relaxed);
        self.object.update(function, acquire, relaxed, site);
        self.guard(site)
    }

    /// Attempts to acquire the mutex.
    #[track_caller]
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        let site = site_of(Location::caller());
        let owner = host(|state| state.running());
        let function = Function::Object(ObjectFunction::MutexTryLock { owner });
        let (acquire, relaxed) = (MemoryOrder::Acquire, MemoryOrder::Relaxed);
        let taken = self.object.update(function, acquire, relaxed, site);
        tried(taken.wrote.is_some(), || self.guard(site))
    }

    fn guard(&self, site: Site) -> LockResult<MutexGuard<'_, T>> {
        guarded(self.poison.get(site), self.data.try_lock(), |data| {
            MutexGuard {
                mutex: self,
                data: Some(data),
                site,
            }
        })
    }
}

impl<T: ?Sized> MutexGuard<'_, T> {
    fn release(&mut self) {
        let Some(data) = self.data.take() else {
            return;
        };
        give_back!(self.mutex, data, self.site);
        if rt::active() {
            let release = MemoryOrder::Release;
            self.mutex.object.store(FREE, release, self.site);
        }
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.release();
    }
}

lock_traits!(Mutex);
guard_traits!(MutexGuard);
guard_traits!(mutable MutexGuard);

impl<T: ?Sized + fmt::Display> fmt::Display for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
