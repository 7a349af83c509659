//! Many readers or one writer.

use std::panic::Location;
use std::sync::{LockResult, TryLockResult};
use std::sync::{RwLock as StdRwLock, RwLockReadGuard as StdRead, RwLockWriteGuard as StdWrite};

use selvedge_core::objects::{FREE, ObjectFunction};
use selvedge_core::{Function, MemoryOrder, Outcome, Site};

use super::guards::{give_back, guard_traits, guarded, lock_traits, tried};
use crate::rt::shared::Flag;
use crate::rt::{self, Object, site_of};

/// As [`std::sync::RwLock`].
pub struct RwLock<T: ?Sized> {
    object: Object,
    poison: Flag,
    /// Never waited for: the object decides which thread may have it.
    data: StdRwLock<T>,
}

/// A shared lock of an [`RwLock`], which is given back when this is dropped.
pub struct RwLockReadGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    data: Option<StdRead<'a, T>>,
    site: Site,
}

/// The exclusive lock of an [`RwLock`], which is given back when this is dropped.
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    lock: &'a RwLock<T>,
    data: Option<StdWrite<'a, T>>,
    site: Site,
}

impl<T> RwLock<T> {
    /// Creates a new lock in an unlocked state.
    #[track_caller]
    pub fn new(data: T) -> RwLock<T> {
        let site = site_of(Location::caller());
        RwLock {
            object: Object::new("RwLock", FREE, site),
            poison: Flag::new("poison of an RwLock", site),
            data: StdRwLock::new(data),
        }
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Locks with shared access, waiting until that is possible.
    #[track_caller]
    pub fn read(&self) -> LockResult<RwLockReadGuard<'_, T>> {
        let site = site_of(Location::caller());
        self.step(ObjectFunction::ReadLock, site);
        self.read_guard(site)
    }

    /// Attempts to lock with shared access.
    #[track_caller]
    pub fn try_read(&self) -> TryLockResult<RwLockReadGuard<'_, T>> {
        let site = site_of(Location::caller());
        let taken = self.step(ObjectFunction::ReadTryLock, site);
        tried(taken.wrote.is_some(), || self.read_guard(site))
    }

    /// Locks with exclusive access, waiting until that is possible.
    #[track_caller]
    pub fn write(&self) -> LockResult<RwLockWriteGuard<'_, T>> {
        let site = site_of(Location::caller());
        self.step(ObjectFunction::WriteLock, site);
        self.write_guard(site)
    }

    /// Attempts to lock with exclusive access.
    #[track_caller]
    pub fn try_write(&self) -> TryLockResult<RwLockWriteGuard<'_, T>> {
        let site = site_of(Location::caller());
        let taken = self.step(ObjectFunction::WriteTryLock, site);
        tried(taken.wrote.is_some(), || self.write_guard(site))
    }

    fn step(&self, function: ObjectFunction, site: Site) -> Outcome {
        let function = Function::Object(function);
        let (acquire, relaxed) = (MemoryOrder::Acquire, MemoryOrder::Relaxed);
        self.object.update(function, acquire, relaxed, site)
    }

    fn read_guard(&self, site: Site) -> LockResult<RwLockReadGuard<'_, T>> {
        guarded(self.poison.get(site), self.data.try_read(), |data| {
            RwLockReadGuard {
                lock: self,
                data: Some(data),
                site,
            }
        })
    }

    fn write_guard(&self, site: Site) -> LockResult<RwLockWriteGuard<'_, T>> {
        guarded(self.poison.get(site), self.data.try_write(), |data| {
            RwLockWriteGuard {
                lock: self,
                data: Some(data),
                site,
            }
        })
    }
}

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    /// Becomes a shared lock, with no writer in between.
    #[track_caller]
    pub fn downgrade(mut this: Self) -> RwLockReadGuard<'a, T> {
        let site = site_of(Location::caller());
        let lock = this.lock;
        drop(this.data.take());
        std::mem::forget(this);
        lock.object.store(FREE + 1, MemoryOrder::Release, site);
        lock.read_guard(site)
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl<T: ?Sized> Drop for RwLockReadGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.data.take());
        if rt::active() {
            let function = Function::Object(ObjectFunction::ReadUnlock);
            let (release, relaxed) = (MemoryOrder::Release, MemoryOrder::Relaxed);
            self.lock
                .object
                .update(function, release, relaxed, self.site);
        }
    }
}

impl<T: ?Sized> Drop for RwLockWriteGuard<'_, T> {
    fn drop(&mut self) {
        give_back!(self.lock, self.data.take(), self.site);
        if rt::active() {
            self.lock
                .object
                .store(FREE, MemoryOrder::Release, self.site);
        }
    }
}

lock_traits!(RwLock);
guard_traits!(RwLockReadGuard);
guard_traits!(RwLockWriteGuard);
guard_traits!(mutable RwLockWriteGuard);
