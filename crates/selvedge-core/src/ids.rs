//! Names of threads, events and memory locations.
//!
//! The name of a thread or an event does not depend on the interleaving. So a graph of one execution can be
//! replayed, compared with another one, and grown into it. A location keeps its number for a whole
//! search, but another process may number locations differently.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A thread, by a dense number that stands for its place in the spawn tree (parent, n-th child).
///
/// The machine hands the numbers out the first time it meets a place and keeps them for the whole
/// search, so the same place has the same number in every execution. Main is always zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ThreadId(pub u32);

impl ThreadId {
    /// The thread that runs `main`.
    pub const MAIN: ThreadId = ThreadId(0);

    /// The number as an index into per-thread tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Debug for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}", self.0)
    }
}

/// An event: the `index`-th of its thread, counted from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventId {
    /// The thread that performs it.
    pub thread: ThreadId,
    /// Its place in program order.
    pub index: u32,
}

/// A memory location or a synchronisation object, by a dense number that the machine keeps for the
/// whole search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Location(pub u32);

impl Location {
    /// The number as an index into per-location tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A place in the code of the program under test, meaningful to the machine only (a return address
/// for native programs, a line for scripted ones).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Site(pub u64);
