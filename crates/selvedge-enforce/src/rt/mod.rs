//! The enforcement library: lets the threads of a program perform their events only in an order
//! that was verified.
//!
//! It implements Algorithm 1 of "Safe Execution of Concurrent Programs by Enforcement of Scheduling
//! Constraints" (Metzler, Saissi, Bokor, Suri), the execution environment: the program's threads
//! are real ones, and each checks for itself, before each of its events, whether the events that
//! have to come first have come. `docs/irs-format.md` says what an event is.
//!
//! The compiler announces plain accesses before it makes them ([`tsan`]), so such an event is over
//! when the thread calls the library for the next time; whatever the library does itself (atomic
//! operations, locks) is over at once ([`event`]).

mod arena;
mod atomic;
mod barrier;
mod c11;
mod calls;
mod choice;
mod compose;
#[cfg(not(test))]
mod composed;
mod condition;
mod diverge;
mod event;
mod file;
mod history;
#[cfg(not(test))]
mod hold;
mod image;
mod inputs;
mod mutex;
mod once;
mod plan;
mod range;
mod refresh;
mod rwlock;
mod semaphore;
mod serial;
mod shared;
mod start;
mod stub;
mod sys;
mod thread;
mod tsan;

#[cfg(test)]
use crate::{composed, hold};

/// The library itself has failed.
#[cfg(not(test))]
pub(crate) fn panicked() -> ! {
    sys::complain(b"selvedge: the enforcement library has failed\n");
    // SAFETY: nothing to rely on.
    unsafe { sys::abort() }
}
