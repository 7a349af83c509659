//! A place for the waker of one task.

use std::fmt;
use std::sync::PoisonError;
use std::task::Waker;

use crate::sync::Mutex;

/// A mock of the type of this name that asynchronous run-times have.
pub struct AtomicWaker {
    waker: Mutex<Option<Waker>>,
}

impl AtomicWaker {
    /// Creates a new instance.
    #[track_caller]
    pub fn new() -> AtomicWaker {
        AtomicWaker {
            waker: Mutex::new(None),
        }
    }

    /// Registers the current task to be notified on calls to `wake`. If it is being woken at this
    /// moment, it is woken right away.
    #[track_caller]
    pub fn register(&self, waker: Waker) {
        match self.waker.try_lock() {
            Ok(mut slot) => *slot = Some(waker),
            Err(_) => {
                waker.wake();
                // Without this, a schedule in which the other side never gets on would have no end.
                drop(self.waker.lock());
            }
        }
    }

    /// The same without consuming the waker.
    #[track_caller]
    pub fn register_by_ref(&self, waker: &Waker) {
        self.register(waker.clone());
    }

    /// Notifies the task that last called `register`.
    #[track_caller]
    pub fn wake(&self) {
        if let Some(waker) = self.take_waker() {
            waker.wake();
        }
    }

    /// Takes the waker, to wake the task later.
    #[track_caller]
    pub fn take_waker(&self) -> Option<Waker> {
        self.waker
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }
}

impl Default for AtomicWaker {
    #[track_caller]
    fn default() -> Self {
        AtomicWaker::new()
    }
}

impl fmt::Debug for AtomicWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicWaker").finish_non_exhaustive()
    }
}
