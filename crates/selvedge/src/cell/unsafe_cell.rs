//! The cell that everything without an order of its own is built from.

use std::cell::UnsafeCell as StdUnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::Location;

use crate::rt::{AccessKind, CellId, Handle, begin_access, end_access, new_cell, site_of};

/// As [`std::cell::UnsafeCell`], with each access told to the checker: two of them, one of which
/// may write, must be ordered by what the threads do to synchronise.
///
/// ```
/// use selvedge::model::{Builder, Verdict};
/// use selvedge::{cell::UnsafeCell, sync::Arc, thread};
///
/// struct Shared(UnsafeCell<u32>);
/// // SAFETY: not sound, which the checker finds.
/// unsafe impl Sync for Shared {}
///
/// let report = Builder::new().explore(|| {
///     let shared = Arc::new(Shared(UnsafeCell::new(0)));
///     let other = Arc::clone(&shared);
///     let thread = thread::spawn(move || other.0.with_mut(|value| unsafe { *value = 1 }));
///     shared.0.with(|value| unsafe { *value });
///     thread.join().unwrap();
/// });
/// let Verdict::Failed(failure) = report.verdict else { panic!("a race") };
/// assert_eq!(failure.kind, "data-race");
/// ```
pub struct UnsafeCell<T: ?Sized> {
    handle: Handle,
    data: StdUnsafeCell<T>,
}

/// A checked immutable raw pointer, for as long as it exists. Made by [`UnsafeCell::get`].
pub struct ConstPtr<T: ?Sized> {
    _access: Access,
    pointer: *const T,
}

/// A checked mutable raw pointer, for as long as it exists. Made by [`UnsafeCell::get_mut`].
pub struct MutPtr<T: ?Sized> {
    _access: Access,
    pointer: *mut T,
}

/// An access that lasts while this exists.
struct Access {
    id: CellId,
    kind: AccessKind,
    /// It ends in the thread that began it.
    confined: PhantomData<*mut ()>,
}

impl Access {
    #[track_caller]
    fn begin(cell: &Handle, kind: AccessKind) -> Access {
        Access {
            id: begin_access(cell, kind, site_of(Location::caller())),
            kind,
            confined: PhantomData,
        }
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        end_access(self.id, self.kind);
    }
}

impl<T> UnsafeCell<T> {
    /// Constructs a new instance which will wrap the specified value.
    #[track_caller]
    pub fn new(data: T) -> UnsafeCell<T> {
        UnsafeCell {
            handle: new_cell(site_of(Location::caller())),
            data: StdUnsafeCell::new(data),
        }
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Gets an immutable pointer to the wrapped value, for as long as `f` runs.
    #[track_caller]
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        let _access = Access::begin(&self.handle, AccessKind::Read);
        f(self.data.get().cast_const())
    }

    /// Gets a mutable pointer to the wrapped value, for as long as `f` runs.
    #[track_caller]
    pub fn with_mut<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        let _access = Access::begin(&self.handle, AccessKind::Write);
        f(self.data.get())
    }

    /// Gets an immutable pointer to the wrapped value. Nobody may write while it exists.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr {
            _access: Access::begin(&self.handle, AccessKind::Read),
            pointer: self.data.get().cast_const(),
        }
    }

    /// Gets a mutable pointer to the wrapped value. Nobody else may access it while it exists.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        MutPtr {
            _access: Access::begin(&self.handle, AccessKind::Write),
            pointer: self.data.get(),
        }
    }
}

impl<T: ?Sized> ConstPtr<T> {
    /// Dereferences the pointer.
    ///
    /// # Safety
    ///
    /// As for dereferencing a raw pointer, except that unordered accesses are reported.
    pub unsafe fn deref(&self) -> &T {
        // SAFETY: the caller's promise.
        unsafe { &*self.pointer }
    }

    /// Gets the raw pointer, for as long as `f` runs.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*const T) -> R,
    {
        f(self.pointer)
    }
}

impl<T: ?Sized> MutPtr<T> {
    /// Dereferences the pointer.
    ///
    /// # Safety
    ///
    /// As for dereferencing a raw pointer, except that unordered accesses are reported.
    #[allow(clippy::mut_from_ref, reason = "loom's signature")]
    pub unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.pointer }
    }

    /// Gets the raw pointer, for as long as `f` runs.
    pub fn with<F, R>(&self, f: F) -> R
    where
        F: FnOnce(*mut T) -> R,
    {
        f(self.pointer)
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> UnsafeCell<T> {
        UnsafeCell::new(Default::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    #[track_caller]
    fn from(data: T) -> UnsafeCell<T> {
        UnsafeCell::new(data)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

impl<T: ?Sized> fmt::Debug for ConstPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pointer.fmt(f)
    }
}

impl<T: ?Sized> fmt::Debug for MutPtr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pointer.fmt(f)
    }
}
