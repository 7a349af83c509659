//! Memory whose leaks are reported, as in [`std::alloc`].

use std::panic::Location;

#[doc(no_inline)]
pub use std::alloc::Layout;

use crate::rt::{active, host, site_of};

/// Allocates memory. Not freeing it is a failure.
///
/// # Safety
///
/// As for [`std::alloc::alloc`].
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    noted(unsafe { std::alloc::alloc(layout) })
}

/// Allocates memory that is all zero. Not freeing it is a failure.
///
/// # Safety
///
/// As for [`std::alloc::alloc_zeroed`].
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's promise.
    noted(unsafe { std::alloc::alloc_zeroed(layout) })
}

#[track_caller]
fn noted(block: *mut u8) -> *mut u8 {
    let site = site_of(Location::caller());
    host(|state| state.track(block.addr(), "block", site));
    block
}

/// Frees memory.
///
/// # Safety
///
/// As for [`std::alloc::dealloc`].
#[track_caller]
pub unsafe fn dealloc(ptr: *mut u8, layout: Layout) {
    host(|state| state.untrack(ptr.addr()));
    // SAFETY: the caller's promise.
    unsafe { std::alloc::dealloc(ptr, layout) }
}

/// A value that must be dropped: not doing so is a failure.
#[derive(Debug)]
pub struct Track<T> {
    value: T,
    mark: Mark,
}

/// The note that exists as long as the value lives.
#[derive(Debug)]
struct Mark {
    key: usize,
}

impl Drop for Mark {
    fn drop(&mut self) {
        if active() {
            host(|state| state.untrack(self.key));
        }
    }
}

impl<T> Track<T> {
    /// Tracks a value.
    #[track_caller]
    pub fn new(value: T) -> Track<T> {
        let site = site_of(Location::caller());
        Track {
            value,
            mark: Mark {
                key: host(|state| state.track_value(site)),
            },
        }
    }

    /// Gets a reference to the value.
    pub fn get_ref(&self) -> &T {
        &self.value
    }

    /// Gets a mutable reference to the value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.value
    }

    /// Stops tracking the value and returns it.
    pub fn into_inner(self) -> T {
        let Track { value, mark } = self;
        drop(mark);
        value
    }
}
