//! Synchronisation primitives, as in [`std::sync`].

mod arc;
pub mod atomic;
mod barrier;
mod condvar;
mod guards;
pub mod mpsc;
mod mutex;
mod notify;
mod once;
mod rwlock;
mod weak;

pub use arc::Arc;
pub use barrier::{Barrier, BarrierWaitResult};
pub use condvar::{Condvar, WaitTimeoutResult};
pub use mutex::{Mutex, MutexGuard};
pub use notify::Notify;
pub use once::{LazyLock, Once, OnceLock, OnceState};
pub use rwlock::{RwLock, RwLockReadGuard, RwLockWriteGuard};
#[doc(no_inline)]
pub use std::sync::{LockResult, PoisonError, TryLockError, TryLockResult};
pub use weak::Weak;
