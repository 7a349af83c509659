//! A mutable memory location.

use std::cmp::Ordering;
use std::fmt;

use super::UnsafeCell;

/// As [`std::cell::Cell`], with each access told to the checker.
pub struct Cell<T> {
    cell: UnsafeCell<T>,
}

// SAFETY: as in the standard library, values can be sent if the contents can.
unsafe impl<T: Send> Send for Cell<T> {}

impl<T> Cell<T> {
    /// Creates a new instance.
    #[track_caller]
    pub fn new(v: T) -> Self {
        Cell {
            cell: UnsafeCell::new(v),
        }
    }

    /// Sets the contained value.
    #[track_caller]
    pub fn set(&self, val: T) {
        drop(self.replace(val));
    }

    /// Swaps the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Self) {
        if std::ptr::eq(self, other) {
            return;
        }
        self.cell.with_mut(|mine| {
            // SAFETY: two different cells, which nobody else accesses: that was just checked.
            other
                .cell
                .with_mut(|theirs| unsafe { std::ptr::swap(mine, theirs) });
        });
    }

    /// Replaces the contained value, and returns the old one.
    #[track_caller]
    pub fn replace(&self, val: T) -> T {
        // SAFETY: nobody else accesses it: that was just checked.
        self.cell
            .with_mut(|cell| unsafe { std::mem::replace(&mut *cell, val) })
    }

    /// Returns a copy of the contained value.
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: nobody writes it: that was just checked.
        self.cell.with(|cell| unsafe { *cell })
    }

    /// Takes the value of the cell, leaving the default in its place.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.cell.into_inner()
    }
}

impl<T: Default> Default for Cell<T> {
    #[track_caller]
    fn default() -> Cell<T> {
        Cell::new(T::default())
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Cell<T> {
        Cell::new(self.get())
    }
}

impl<T> From<T> for Cell<T> {
    #[track_caller]
    fn from(src: T) -> Cell<T> {
        Cell::new(src)
    }
}

impl<T: PartialEq + Copy> PartialEq for Cell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq + Copy> Eq for Cell<T> {}

impl<T: PartialOrd + Copy> PartialOrd for Cell<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Ord + Copy> Ord for Cell<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("value", &self.get()).finish()
    }
}
