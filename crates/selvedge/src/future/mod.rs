//! Waiting for futures.

mod atomic_waker;

pub use atomic_waker::AtomicWaker;

use std::future::Future;
use std::panic::Location;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use crate::alloc::Track;
use crate::rt::site_of;
use crate::sync::Notify;
use crate::thread::{self, JoinHandle};

/// A task that is waited for. A waker that is never dropped is reported as a leak.
struct Task {
    notify: Notify,
    _track: Track<()>,
}

impl Wake for Task {
    #[track_caller]
    fn wake(self: Arc<Self>) {
        self.notify.notify_at(site_of(Location::caller()));
    }

    #[track_caller]
    fn wake_by_ref(self: &Arc<Self>) {
        self.notify.notify_at(site_of(Location::caller()));
    }
}

/// Runs a future in a thread of its own.
#[track_caller]
pub fn spawn<F>(f: F) -> JoinHandle<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    thread::spawn(move || block_on(f))
}

/// Blocks the current thread, driving `f` to completion. That it is polled once without having been
/// woken is explored.
///
/// ```
/// use std::task::Poll;
///
/// use selvedge::future::{AtomicWaker, block_on};
/// use selvedge::sync::Arc;
/// use selvedge::sync::atomic::{AtomicBool, Ordering};
///
/// selvedge::model(|| {
///     let shared = Arc::new((AtomicBool::new(false), AtomicWaker::new()));
///     let other = Arc::clone(&shared);
///     selvedge::thread::spawn(move || {
///         other.0.store(true, Ordering::Release);
///         other.1.wake();
///     });
///     block_on(std::future::poll_fn(|context| {
///         // Registering before looking: the other way round, a wake-up could be lost.
///         shared.1.register_by_ref(context.waker());
///         match shared.0.load(Ordering::Acquire) {
///             true => Poll::Ready(()),
///             false => Poll::Pending,
///         }
///     }));
/// });
/// ```
#[track_caller]
pub fn block_on<F>(f: F) -> F::Output
where
    F: Future,
{
    let site = site_of(Location::caller());
    let mut future = pin!(f);
    let task = Arc::new(Task {
        notify: Notify::new(),
        _track: Track::new(()),
    });
    let waker = Waker::from(Arc::clone(&task));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        task.notify.wait_or_wake(site);
    }
}
