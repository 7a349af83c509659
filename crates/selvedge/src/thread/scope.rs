//! Threads that borrow.

use std::any::Any;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use selvedge_core::Site;

use super::{Packet, Thread, ThreadId, current, wait_for};
use crate::rt::{self, site_of};

/// A scope to spawn scoped threads in. See [`scope`].
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    /// The creator of each thread. Threads of the scope may spawn others in it; no thread is suspended with
    /// this lock.
    spawned: Mutex<Vec<(ThreadId, ThreadId)>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// An owned permission to join on a scoped thread.
pub struct ScopedJoinHandle<'scope, T> {
    packet: Packet<T>,
    thread: Thread,
    scope: PhantomData<&'scope ()>,
}

/// Creates a scope for spawning scoped threads, as [`std::thread::scope`].
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let site = site_of(Location::caller());
    let owner = current().id;
    let scope = Scope {
        spawned: Mutex::new(Vec::new()),
        scope: PhantomData,
        env: PhantomData,
    };
    let result = catch_unwind(AssertUnwindSafe(|| f(&scope)));
    // No thread may borrow any more, whatever happened. In an execution that is over, the younger
    // threads were ended first.
    scope.wait(owner, site);
    result.unwrap_or_else(|payload: Box<dyn Any + Send>| resume_unwind(payload))
}

impl Scope<'_, '_> {
    /// Waits for what `parent` has spawned, and for what that has spawned. The next thread to wait
    /// for depends only on threads that have ended, not on how far others have come.
    fn wait(&self, parent: ThreadId, site: Site) {
        let mut parents = VecDeque::from([parent]);
        while let Some(parent) = parents.pop_front() {
            let children: Vec<ThreadId> = self
                .spawned()
                .iter()
                .filter(|(by, _)| *by == parent)
                .map(|(_, child)| *child)
                .collect();
            for child in children {
                wait_for(child, site);
                parents.push_back(child);
            }
        }
    }

    fn spawned(&self) -> MutexGuard<'_, Vec<(ThreadId, ThreadId)>> {
        self.spawned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Spawns a new thread within the scope.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        self.start(f, None, site_of(Location::caller()))
    }

    pub(super) fn start<F, T>(
        &'scope self,
        f: F,
        name: Option<String>,
        site: Site,
    ) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let parent = current().id;
        let packet = Packet::new(site);
        let result = packet.share();
        let start: Box<dyn FnOnce() + 'scope> = Box::new(move || result.put(f()));
        // SAFETY: only the lifetime changes. The scope does not return before the thread has ended.
        let start: Box<dyn FnOnce()> = unsafe { std::mem::transmute(start) };
        let id = rt::spawn(start, name.clone(), site).0;
        let id = ThreadId { id };
        self.spawned().push((parent, id));
        ScopedJoinHandle {
            packet,
            thread: Thread { id, name },
            scope: PhantomData,
        }
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to finish.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        self.packet
            .wait(self.thread.id, site_of(Location::caller()))
    }

    /// Whether the thread has run its main function (see
    /// [`JoinHandle::is_finished`](super::JoinHandle::is_finished)).
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.packet.has_ended(site_of(Location::caller()))
    }

    /// Gets a handle to the underlying thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

impl<T> std::fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
