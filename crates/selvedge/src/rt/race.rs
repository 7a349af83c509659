//! Plain accesses that nothing orders.

use selvedge_core::{Site, ThreadEnd};

use super::gone::Gone;
use super::thread::Thread;

/// The cell that an [`crate::cell::UnsafeCell`] is in this execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellId {
    pub(super) stamp: u64,
    pub(super) index: u32,
}

/// Whether an access may change what it touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessKind {
    /// It only looks.
    Read,
    /// It may write.
    Write,
}

impl AccessKind {
    pub(super) fn noun(self) -> &'static str {
        match self {
            AccessKind::Read => "read",
            AccessKind::Write => "write",
        }
    }
}

/// An access that lasts until it is said to have ended.
pub(super) const LASTING: u32 = u32::MAX;

/// One access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) thread: u32,
    /// How many events of its thread came before its end.
    pub(super) epoch: u32,
    pub(super) site: Site,
}

/// A thread's view of the others at one point.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) thread: u32,
    /// How many events of each thread happen before.
    pub(super) clock: &'a [u32],
    /// How threads ended that were waited for.
    pub(super) ends: &'a [ThreadEnd],
}

impl<'a> View<'a> {
    /// The view of `thread` now.
    pub(super) fn of(thread: usize, threads: &'a [Thread], ends: &'a [ThreadEnd]) -> View<'a> {
        View {
            thread: thread as u32,
            clock: &threads[thread].clock,
            ends,
        }
    }

    /// Whether what `access` did happens before the present point.
    pub(super) fn knows(&self, access: &Access) -> bool {
        if access.thread == self.thread {
            return access.epoch != LASTING;
        }
        let thread = access.thread as usize;
        let counted = self.clock.get(thread).copied().unwrap_or(0);
        let ended = |end: &ThreadEnd| end.orders(access.epoch, self.clock);
        // No thread counts as many events as an access that lasts has.
        counted > access.epoch || self.ends.get(thread).is_some_and(ended)
    }
}

/// The state of a cell in an execution.
pub(super) struct CellState {
    pub(super) race: Race,
    pub(super) gone: Option<Gone>,
}

/// The plain accesses to one piece of memory that a later one may clash with.
#[derive(Default)]
pub(super) struct Race {
    write: Option<Access>,
    reads: Vec<Access>,
}

impl Race {
    pub(super) fn clear(&mut self) {
        self.write = None;
        self.reads.clear();
    }

    /// The access that one of this `kind`, with this view, is unordered with.
    pub(super) fn clash(&self, kind: AccessKind, view: &View<'_>) -> Option<(Access, AccessKind)> {
        // Within one thread, only accesses that still last can clash.
        if let Some(write) = self.write.filter(|write| !view.knows(write)) {
            return Some((write, AccessKind::Write));
        }
        if kind == AccessKind::Read {
            return None;
        }
        let read = self.reads.iter().find(|read| !view.knows(read));
        read.map(|&read| (read, AccessKind::Read))
    }

    /// Notes an access that clashes with nothing.
    pub(super) fn note(&mut self, kind: AccessKind, access: Access) {
        match kind {
            AccessKind::Write => {
                self.reads.clear();
                self.write = Some(access);
            }
            AccessKind::Read => {
                let known = self
                    .reads
                    .iter_mut()
                    .find(|read| read.thread == access.thread && read.epoch != LASTING);
                match known {
                    Some(read) if access.epoch != LASTING => *read = access,
                    _ => self.reads.push(access),
                }
            }
        }
    }

    /// A lasting access of `thread` ends after `epoch` of its events.
    pub(super) fn end(&mut self, kind: AccessKind, thread: u32, epoch: u32) {
        let lasting = |access: &Access| access.thread == thread && access.epoch == LASTING;
        match kind {
            AccessKind::Write => {
                if let Some(write) = self.write.as_mut().filter(|write| lasting(write)) {
                    write.epoch = epoch;
                }
            }
            AccessKind::Read => {
                if let Some(at) = self.reads.iter().position(lasting) {
                    let read = self.reads.swap_remove(at);
                    self.note(kind, Access { epoch, ..read });
                }
            }
        }
    }
}
