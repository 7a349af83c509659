//! A model checker for concurrent Rust, with the interface of loom.
//!
//! A test written for loom runs its closure under every schedule, and every weak-memory outcome,
//! that matters. Here each of them is run exactly once.
//!
//! ```
//! use selvedge::sync::Arc;
//! use selvedge::sync::atomic::{AtomicUsize, Ordering};
//! use selvedge::thread;
//!
//! selvedge::model(|| {
//!     let count = Arc::new(AtomicUsize::new(0));
//!     let other = Arc::clone(&count);
//!     let thread = thread::spawn(move || {
//!         other.fetch_add(1, Ordering::Relaxed);
//!     });
//!     count.fetch_add(1, Ordering::Relaxed);
//!     thread.join().unwrap();
//!     assert_eq!(count.load(Ordering::Relaxed), 2);
//! });
//! ```
//!
//! `docs/rust.md` of the project says how a crate with loom tests is checked, what a failure looks
//! like, what differs from loom, and what to know. In short: the closure must create everything it
//! shares, and depend on nothing but the schedule; [`model::Builder`] chooses the memory model and
//! limits; [`replay`] runs one execution again.

mod advice;
mod calls;
mod checkpoint;
mod clerk;
mod estimate;
mod jobs;
mod macros;
mod options;
mod page;
mod replay;
mod report;
mod rt;
mod search;
mod token;
mod watch;

pub mod alloc;
pub mod cell;
pub mod explore;
pub mod future;
pub mod hint;
pub mod lazy_static;
pub mod model;
pub mod sync;
pub mod thread;

#[doc(inline)]
pub use model::model;
pub use replay::replay;

/// How many threads a model may have, for code that asks; there is no limit.
pub const MAX_THREADS: usize = usize::MAX;

/// loom's way to begin exploring in the middle of a test. Everything is explored here anyway.
pub fn explore() {}

/// loom's way to stop exploring. The rest is explored all the same.
pub fn stop_exploring() {}

/// loom's way to leave out alternatives. They are explored all the same.
pub fn skip_branch() {}

/// The guide's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../rust.md")]
struct Guide;

/// So are those of the kinds of bugs.
#[cfg(doctest)]
#[doc = include_str!("../kinds_of_bugs.md")]
struct KindsOfBugs;
