//! Channels, as in [`std::sync::mpsc`].
//!
//! A channel is a semaphore that counts what can be received. The end of the last sender counts as
//! well: a receiver that takes it puts it back, so that it can be received again and again.

mod queue;
mod receiver;

pub use receiver::{IntoIter, Iter, Receiver, TryIter};
#[doc(no_inline)]
pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError, TrySendError};

use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::rt::{Site, active, site_of};
use queue::{Queue, Sent};

/// Creates a new asynchronous channel, returning the sender and receiver halves.
#[track_caller]
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let queue = Arc::new(Queue::new(None, site_of(Location::caller())));
    let sender = Sender {
        queue: Arc::clone(&queue),
    };
    (sender, Receiver::new(queue))
}

/// Creates a new synchronous, bounded channel. A sender to a channel without any room waits until
/// its message is received.
#[track_caller]
pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
    let queue = Arc::new(Queue::new(Some(bound), site_of(Location::caller())));
    let sender = SyncSender {
        queue: Arc::clone(&queue),
    };
    (sender, Receiver::new(queue))
}

/// The sending half of [`channel`].
pub struct Sender<T> {
    queue: Arc<Queue<T>>,
}

/// The sending half of [`sync_channel`].
pub struct SyncSender<T> {
    queue: Arc<Queue<T>>,
}

impl<T> Sender<T> {
    /// Attempts to send a value on this channel, returning it back if it could not be sent.
    #[track_caller]
    pub fn send(&self, msg: T) -> Result<(), SendError<T>> {
        self.queue.send(msg, site_of(Location::caller()))
    }
}

impl<T> SyncSender<T> {
    /// Sends a value on this synchronous channel, waiting for room.
    #[track_caller]
    pub fn send(&self, msg: T) -> Result<(), SendError<T>> {
        self.queue.send(msg, site_of(Location::caller()))
    }

    /// Attempts to send a value on this channel without waiting.
    #[track_caller]
    pub fn try_send(&self, msg: T) -> Result<(), TrySendError<T>> {
        match self.queue.try_send(msg, site_of(Location::caller())) {
            Sent::Yes => Ok(()),
            Sent::Full(msg) => Err(TrySendError::Full(msg)),
            Sent::Disconnected(msg) => Err(TrySendError::Disconnected(msg)),
        }
    }
}

fn drop_sender<T>(queue: &Queue<T>, site: Site) {
    if active() {
        queue.drop_sender(site);
    }
}

impl<T> Clone for Sender<T> {
    #[track_caller]
    fn clone(&self) -> Sender<T> {
        self.queue.add_sender(site_of(Location::caller()));
        Sender {
            queue: Arc::clone(&self.queue),
        }
    }
}

impl<T> Clone for SyncSender<T> {
    #[track_caller]
    fn clone(&self) -> SyncSender<T> {
        self.queue.add_sender(site_of(Location::caller()));
        SyncSender {
            queue: Arc::clone(&self.queue),
        }
    }
}

impl<T> Drop for Sender<T> {
    #[track_caller]
    fn drop(&mut self) {
        drop_sender(&self.queue, site_of(Location::caller()));
    }
}

impl<T> Drop for SyncSender<T> {
    #[track_caller]
    fn drop(&mut self) {
        drop_sender(&self.queue, site_of(Location::caller()));
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for SyncSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SyncSender").finish_non_exhaustive()
    }
}
