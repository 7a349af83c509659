//! Values that are made once.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::ops::Deref;
use std::panic::Location;

use selvedge_core::objects::{DONE, FREE, ObjectFunction};
use selvedge_core::{Function, MemoryOrder, Site};

use crate::rt::{Object, site_of};

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
        let begun = Begun {
            once: &self.once,
            site,
            state: Cell::new(FREE),
        };
        let value = make();
        // SAFETY: this thread has begun, so no other one accesses the value.
        unsafe { *self.value.get() = value };
        begun.state.set(DONE);
    }

    fn value(&self) -> Option<&T> {
        // SAFETY: it is not written any more once it is there.
        unsafe { (*self.value.get()).as_ref() }
    }

    /// Consumes the cell, returning the wrapped value.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }
}

/// Ends an initialisation: after a panic the next thread runs it.
struct Begun<'a> {
    once: &'a Object,
    site: Site,
    state: Cell<u128>,
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

impl<T> fmt::Debug for OnceLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceLock").finish_non_exhaustive()
    }
}

/// As [`std::sync::Once`], without poison: after a panic the next thread runs it.
#[derive(Debug, Default)]
pub struct Once(OnceLock<()>);

impl Once {
    /// Creates a new value.
    #[track_caller]
    #[allow(clippy::new_without_default, reason = "it is there")]
    pub fn new() -> Once {
        Once(OnceLock::new())
    }

    /// Runs `f` if nobody has done so, and waits for a thread that is doing so.
    #[track_caller]
    pub fn call_once<F: FnOnce()>(&self, f: F) {
        self.0.get_or_init(f);
    }

    /// Whether some call has completed.
    #[track_caller]
    pub fn is_completed(&self) -> bool {
        self.0.get().is_some()
    }

    /// Waits until some call has completed.
    #[track_caller]
    pub fn wait(&self) {
        self.0.wait();
    }
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
