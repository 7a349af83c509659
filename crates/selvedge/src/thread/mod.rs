//! Threads of a model, as in [`std::thread`].

mod local;
mod scope;

pub use local::{AccessError, LocalKey};
pub use scope::{Scope, ScopedJoinHandle, scope};
#[doc(no_inline)]
pub use std::thread::{Result, panicking};

use std::fmt;
use std::io;
use std::num::NonZero;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use selvedge_core::objects::ObjectFunction;
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Op, Site, Width};

use crate::rt::shared::Flag;
use crate::rt::{self, Object, host, site_of, visible};

/// A handle to a thread.
#[derive(Clone, Debug)]
pub struct Thread {
    id: ThreadId,
    name: Option<String>,
}

/// A unique identifier for a running thread.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct ThreadId {
    id: u32,
}

/// An owned permission to join on a thread.
pub struct JoinHandle<T> {
    packet: Packet<T>,
    thread: Thread,
}

/// Thread factory, which can be used in order to configure the properties of a new thread.
#[derive(Debug)]
pub struct Builder {
    name: Option<String>,
}

/// Where a thread leaves what it returns.
struct Packet<T>(Arc<Mutex<Option<T>>>, Flag);

impl<T> Packet<T> {
    /// For a thread that is created at `site`.
    fn new(site: Site) -> Packet<T> {
        Packet(
            Arc::new(Mutex::new(None)),
            Flag::new("end of a thread", site),
        )
    }

    fn share(&self) -> Packet<T> {
        Packet(Arc::clone(&self.0), self.1)
    }

    fn put(&self, result: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        self.1.set(true, MemoryOrder::Release, self.1.site);
    }

    /// Whether the thread has put its result here.
    fn has_ended(&self, site: Site) -> bool {
        self.1.ask(site).unwrap_or(true)
    }

    /// Waits for `thread`, which puts its result here.
    fn wait(&self, thread: ThreadId, site: Site) -> std::thread::Result<T> {
        wait_for(thread, site);
        let mut packet = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match packet.take() {
            Some(result) => Ok(result),
            None => rt::inconsistent(),
        }
    }
}

impl Thread {
    /// Gets the thread's unique identifier.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Gets the thread's name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Makes the thread's next, or present, call of [`park`] return.
    #[track_caller]
    pub fn unpark(&self) {
        let site = site_of(Location::caller());
        let rmw = Rmw::Or(1);
        let width = Width(1);
        let release = MemoryOrder::Release;
        token(self.id.id, site).update(Function::memory(width, rmw), release, release, site);
    }
}

/// The token that [`park`] waits for.
fn token(thread: u32, site: Site) -> Object {
    // No static is there, and the name is the same in each execution.
    Object::of_static("the token of a thread", usize::MAX - thread as usize, site)
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ThreadId({})", self.id)
    }
}

/// Gets a handle to the thread that invokes it.
#[track_caller]
pub fn current() -> Thread {
    let (id, name) = host(|state| (state.running().0, state.running_name()));
    Thread {
        id: ThreadId { id },
        name,
    }
}

/// Waits until some thread calls [`Thread::unpark`] for this one. It does not return for no reason,
/// unless [`Builder::spurious_wakeups`](crate::model::Builder::spurious_wakeups) says so.
#[track_caller]
pub fn park() {
    let site = site_of(Location::caller());
    let thread = host(|state| state.running().0);
    if rt::wakes_spuriously(site) {
        return;
    }
    let function = Function::Object(ObjectFunction::SemaphoreWait);
    let acquire = MemoryOrder::Acquire;
    token(thread, site).update(function, acquire, acquire, site);
}

/// The same, or until time is up, which is explored within
/// [`Builder::max_timeouts`](crate::model::Builder::max_timeouts).
#[track_caller]
pub fn park_timeout(_dur: Duration) {
    let site = site_of(Location::caller());
    let thread = host(|state| state.running().0);
    let function = match host(|state| state.begin_timed_wait()) {
        true => ObjectFunction::SemaphoreTryWait,
        false => ObjectFunction::SemaphoreWait,
    };
    let acquire = MemoryOrder::Acquire;
    let taken = token(thread, site).update(Function::Object(function), acquire, acquire, site);
    host(|state| state.end_timed_wait(taken.wrote.is_none()));
}

/// Lets others go on. Nothing depends on it: every schedule is explored anyway, and loops that only
/// wait are recognised without.
pub fn yield_now() {}

/// Time does not pass in a model: returns at once.
pub fn sleep(_dur: Duration) {}

/// How many threads can run at the same time: two, so that a program that asks does not depend on
/// the machine.
pub fn available_parallelism() -> io::Result<NonZero<usize>> {
    NonZero::new(2).ok_or_else(|| io::ErrorKind::Unsupported.into())
}

/// Spawns a new thread, returning a [`JoinHandle`] for it.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    start(f, None, site_of(Location::caller()))
}

fn start<F, T>(f: F, name: Option<String>, site: Site) -> JoinHandle<T>
where
    F: FnOnce() -> T + 'static,
    T: 'static,
{
    let packet = Packet::new(site);
    let result = packet.share();
    let start = Box::new(move || result.put(f()));
    let id = rt::spawn(start, name.clone(), site).0;
    let id = ThreadId { id };
    let thread = Thread { id, name };
    JoinHandle { packet, thread }
}

/// Waits for a thread to end.
fn wait_for(thread: ThreadId, site: Site) {
    let child = selvedge_core::ThreadId(thread.id);
    visible(Op::Join { child }, site);
}

impl<T> JoinHandle<T> {
    /// Waits for the thread to finish. A thread that panics fails the model, so there is always a
    /// result.
    #[track_caller]
    pub fn join(self) -> std::thread::Result<T> {
        self.packet
            .wait(self.thread.id, site_of(Location::caller()))
    }

    /// Whether the thread has run its main function. That it has is not yet an order of what it did
    /// before what follows; [`join`](JoinHandle::join) makes one.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        self.packet.has_ended(site_of(Location::caller()))
    }

    /// Gets a handle to the underlying thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}

impl Builder {
    /// Generates the base configuration for spawning a thread.
    #[allow(clippy::new_without_default, reason = "as std::thread::Builder")]
    pub fn new() -> Builder {
        Builder { name: None }
    }

    /// Names the thread-to-be.
    pub fn name(mut self, name: String) -> Builder {
        self.name = Some(name);
        self
    }

    /// Accepted, but all threads have [`stack_size`](crate::model::Builder::stack_size) bytes.
    pub fn stack_size(self, _size: usize) -> Builder {
        self
    }

    /// Spawns a new thread.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        Ok(start(f, self.name, site_of(Location::caller())))
    }

    /// Spawns a new scoped thread.
    #[track_caller]
    pub fn spawn_scoped<'scope, F, T>(
        self,
        scope: &'scope Scope<'scope, '_>,
        f: F,
    ) -> io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Ok(scope.start(f, self.name, site_of(Location::caller())))
    }
}

// SAFETY: all threads of a model run on one OS thread, as loom's do, whose handle is both as well.
unsafe impl<T> Send for JoinHandle<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for JoinHandle<T> {}
