//! The receiving half.

use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use std::sync::mpsc::{RecvError, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::queue::{Queue, Received};
use crate::rt::{active, host, site_of};

/// The receiving half of a channel.
pub struct Receiver<T> {
    queue: Arc<Queue<T>>,
}

/// An iterator over messages, which waits for them.
#[derive(Debug)]
pub struct Iter<'a, T> {
    receiver: &'a Receiver<T>,
}

/// An iterator over the messages that are there.
#[derive(Debug)]
pub struct TryIter<'a, T> {
    receiver: &'a Receiver<T>,
}

/// An owning iterator over messages, which waits for them.
#[derive(Debug)]
pub struct IntoIter<T> {
    receiver: Receiver<T>,
}

impl<T> Receiver<T> {
    pub(super) fn new(queue: Arc<Queue<T>>) -> Receiver<T> {
        Receiver { queue }
    }

    /// Waits for a value on this receiver, returning an error if there is no sender any more.
    #[track_caller]
    pub fn recv(&self) -> Result<T, RecvError> {
        match self.queue.receive(true, site_of(Location::caller())) {
            Received::Message(message) => Ok(message),
            Received::Nothing | Received::Disconnected => Err(RecvError),
        }
    }

    /// Attempts to return a pending value without waiting.
    #[track_caller]
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        match self.queue.receive(false, site_of(Location::caller())) {
            Received::Message(message) => Ok(message),
            Received::Nothing => Err(TryRecvError::Empty),
            Received::Disconnected => Err(TryRecvError::Disconnected),
        }
    }

    /// Waits for a value or a time-out, which is explored within
    /// [`Builder::max_timeouts`](crate::model::Builder::max_timeouts).
    #[track_caller]
    pub fn recv_timeout(&self, _timeout: Duration) -> Result<T, RecvTimeoutError> {
        let waits = !host(|state| state.begin_timed_wait());
        let received = self.queue.receive(waits, site_of(Location::caller()));
        let timed_out = matches!(received, Received::Nothing);
        host(|state| state.end_timed_wait(timed_out));
        match received {
            Received::Message(message) => Ok(message),
            Received::Nothing => Err(RecvTimeoutError::Timeout),
            Received::Disconnected => Err(RecvTimeoutError::Disconnected),
        }
    }

    /// Returns an iterator that waits for messages until there is no sender any more.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter { receiver: self }
    }

    /// Returns an iterator over the messages that are there.
    pub fn try_iter(&self) -> TryIter<'_, T> {
        TryIter { receiver: self }
    }
}

impl<T> Drop for Receiver<T> {
    #[track_caller]
    fn drop(&mut self) {
        if active() {
            self.queue.close(site_of(Location::caller()));
        }
    }
}

impl<T> Iterator for Iter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<T> Iterator for TryIter<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.try_recv().ok()
    }
}

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.receiver.recv().ok()
    }
}

impl<'a, T> IntoIterator for &'a Receiver<T> {
    type Item = T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

impl<T> IntoIterator for Receiver<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter { receiver: self }
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver").finish_non_exhaustive()
    }
}
