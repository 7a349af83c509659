//! Values that are made once.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::ops::Deref;
use std::panic::Location;

use selvedge_core::objects::{DONE, FREE, ObjectFunction, POISONED};
use selvedge_core::op::Rmw;
use selvedge_core::{Function, MemoryOrder, Site, Value, Width};

use crate::rt::{Object, site_of};

/// The value of a once whose routine runs.
const RUNNING: Value = 1;

/// As [`std::sync::OnceLock`].
pub struct OnceLock<T> {
    once: Object,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the value is written by the one thread that begins, before any other gets to see it.
unsafe impl<T: Sync + Send> Sync for OnceLock<T> {}
// SAFETY: it owns its value.
unsafe impl<T: Send> Send for OnceLock<T> {}

impl<T> OnceLock<T> {
    /// Creates a new empty cell.
    #[track_caller]
    pub fn new() -> OnceLock<T> {
        OnceLock {
            once: Object::new("OnceLock", FREE, site_of(Location::caller())),
            value: UnsafeCell::new(None),
        }
    }

    /// Gets the reference to the underlying value, if there is one.
    #[track_caller]
    pub fn get(&self) -> Option<&T> {
        let site = site_of(Location::caller());
        match self.once.load(MemoryOrder::Acquire, site) {
            DONE => self.value(),
            _ => None,
        }
    }

    /// Gets the mutable reference to the underlying value, if there is one.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.value.get_mut().as_mut()
    }

    /// Sets the contents, unless there are some. Waits for a thread that is doing so.
    #[track_caller]
    pub fn set(&self, value: T) -> Result<(), T> {
        let site = site_of(Location::caller());
        let mut value = Some(value);
        self.initialise(|| value.take(), site);
        match value {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// Gets the contents, making them with `f` if there are none.
    #[track_caller]
    pub fn get_or_init<F>(&self, f: F) -> &T
    where
        F: FnOnce() -> T,
    {
        let site = site_of(Location::caller());
        self.initialise(|| Some(f()), site);
        match self.value() {
            Some(value) => value,
            None => crate::rt::inconsistent(),
        }
    }

    /// Waits until there is a value.
    #[track_caller]
    pub fn wait(&self) -> &T {
        loop {
            if let Some(value) = self.get() {
                return value;
            }
        }
    }

    fn initialise(&self, make: impl FnOnce() -> Option<T>, site: Site) {
        let begin = Function::Object(ObjectFunction::OnceBegin);
        let acquire = MemoryOrder::Acquire;
        if self
            .once
            .update(begin, acquire, acquire, site)
            .wrote
            .is_none()
        {
            return;
        }
        let begun = Begun::new(&self.once, FREE, site);
        let value = make();
        // SAFETY: this thread has begun, so no other one accesses the value.
        unsafe { *self.value.get() = value };
        begun.state.set(DONE);
    }

    fn value(&self) -> Option<&T> {
        // SAFETY: it is not written any more once it is there.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// Takes the value out; the cell is empty then.
    #[track_caller]
    pub fn take(&mut self) -> Option<T> {
        std::mem::take(self).into_inner()
    }

    /// Consumes the cell, returning the wrapped value.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

/// Ends an initialisation.
struct Begun<'a> {
    once: &'a Object,
    site: Site,
    /// The state that it ends in: as long as nobody changes this, that after a panic.
    state: Cell<Value>,
}

impl<'a> Begun<'a> {
    fn new(once: &'a Object, after_panic: Value, site: Site) -> Begun<'a> {
        let state = Cell::new(after_panic);
        Begun { once, site, state }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.once
            .store(self.state.get(), MemoryOrder::Release, self.site);
    }
}

impl<T> Default for OnceLock<T> {
    #[track_caller]
    fn default() -> Self {
        OnceLock::new()
    }
}

impl<T> From<T> for OnceLock<T> {
    #[track_caller]
    fn from(value: T) -> Self {
        OnceLock {
            once: Object::new("OnceLock", DONE, site_of(Location::caller())),
            value: UnsafeCell::new(Some(value)),
        }
    }
}

impl<T: Clone> Clone for OnceLock<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        match self.get() {
            Some(value) => OnceLock::from(value.clone()),
            None => OnceLock::new(),
        }
    }
}

impl<T: PartialEq> PartialEq for OnceLock<T> {
    #[track_caller]
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceLock<T> {}

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}

/// As [`std::sync::Once`].
#[derive(Debug)]
pub struct Once(Object);

/// As [`std::sync::OnceState`].
#[derive(Debug)]
pub struct OnceState {
    was_poisoned: bool,
}

impl OnceState {
    /// Whether the call before has panicked.
    pub fn is_poisoned(&self) -> bool {
        self.was_poisoned
    }
}

impl Once {
    /// Creates a new value.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "as in the standard library")]
    pub fn new() -> Once {
        Once(Object::new("Once", FREE, site_of(Location::caller())))
    }

    /// Runs `f` if nobody has done so, and waits for a thread that is doing so.
    ///
    /// # Panics
    ///
    /// If the call before has panicked.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        let site = site_of(Location::caller());
        match self.begin(site) {
            Ok(begun) => {
                f();
                begun.state.set(DONE);
            }
            Err(POISONED) => poisoned(),
            Err(_) => {}
        }
    }

    /// The same if the call before has panicked.
    #[track_caller]
    pub fn call_once_force<F: FnOnce(&OnceState)>(&self, f: F) {
        let site = site_of(Location::caller());
        let again = Function::memory(
            Width(8),
            Rmw::CompareExchange {
                expected: POISONED,
                desired: RUNNING,
            },
        );
        let acquire = MemoryOrder::Acquire;
        let (begun, was_poisoned) = loop {
            match self.begin(site) {
                Ok(begun) => break (begun, false),
                Err(POISONED) => {
                    let taken = self.0.update(again, acquire, acquire, site);
                    if taken.wrote.is_some() {
                        break (Begun::new(&self.0, POISONED, site), true);
                    }
                }
                Err(_) => return,
            }
        };
        f(&OnceState { was_poisoned });
        begun.state.set(DONE);
    }

    /// Begins, unless that is over, which the state tells, and waits for a thread that has begun.
    fn begin(&self, site: Site) -> Result<Begun<'_>, Value> {
        let begin = Function::Object(ObjectFunction::OnceBegin);
        let acquire = MemoryOrder::Acquire;
        let before = self.0.update(begin, acquire, acquire, site);
        match before.wrote {
            Some(_) => Ok(Begun::new(&self.0, POISONED, site)),
            None => Err(before.read),
        }
    }

    /// Whether some call has completed.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        let site = site_of(Location::caller());
        self.0.load(MemoryOrder::Acquire, site) == DONE
    }

    /// Waits until some call has completed.
    ///
    /// # Panics
    ///
    /// If a call has panicked.
    #[track_caller]
    pub fn wait(&self) {
        let site = site_of(Location::caller());
        loop {
            match self.0.load(MemoryOrder::Acquire, site) {
                DONE => return,
                POISONED => poisoned(),
                _ => {}
            }
        }
    }

    /// Waits until some call has completed, also if others panic.
    #[track_caller]
    pub fn wait_force(&self) {
        while !self.is_completed() {}
    }
}

#[track_caller]
fn poisoned() -> ! {
    panic!("Once instance has previously been poisoned")
}

/// As [`std::sync::LazyLock`].
pub struct LazyLock<T, F = fn() -> T> {
    once: OnceLock<T>,
    make: Cell<Option<F>>,
}

// SAFETY: the closure is taken by the one thread that begins.
unsafe impl<T: Sync + Send, F: Send> Sync for LazyLock<T, F> {}

impl<T, F: FnOnce() -> T> LazyLock<T, F> {
    /// Creates a new lazy value with the given initialising function.
    #[track_caller]
    pub fn new(f: F) -> LazyLock<T, F> {
        LazyLock {
            once: OnceLock::new(),
            make: Cell::new(Some(f)),
        }
    }

    /// Forces the evaluation of this lazy value and returns a reference to it.
    #[track_caller]
    pub fn force(this: &LazyLock<T, F>) -> &T {
        this.once.get_or_init(|| match this.make.take() {
            Some(make) => make(),
            None => panic!("LazyLock instance has previously been poisoned"),
        })
    }
}

impl<T, F: FnOnce() -> T> Deref for LazyLock<T, F> {
    type Target = T;

    #[track_caller]
    fn deref(&self) -> &T {
        LazyLock::force(self)
    }
}

impl<T, F> fmt::Debug for LazyLock<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyLock").finish_non_exhaustive()
    }
}
