//! The part of Selvedge that knows what an execution is and how to visit each of them once.
//!
//! Nothing here knows of C, of fibers or of files. A program under test is a [`Machine`]: something
//! that can be reset, asked what each of its threads is about to do, and told to do it. Explorers
//! own every decision (which thread runs, which write a read sees); the machine owns none.
#![forbid(unsafe_code)]

mod bugs;
pub mod dpor;
pub mod failure;
pub mod fingerprint;
pub mod graph;
pub mod ids;
pub mod interleave;
pub mod irs;
mod linear;
pub mod ltl;
pub mod machine;
pub mod model;
pub mod objects;
pub mod op;
pub mod random;
pub mod repair;
pub mod report;
mod rewind;
pub mod saved;
pub mod settings;
pub mod spawned;
mod spins;
pub mod states;
pub mod thread_end;
pub mod tracer;
pub mod trust;
pub mod witness;
pub mod words;

pub use failure::{Failure, FailureKind, Other};
pub use ids::{EventId, Location, Site, ThreadId};
pub use machine::{Fact, Machine, Outcome, Pending, Portable, SpinLoops, Stop};
pub use op::{Effect, Function, MemoryOrder, Op, Value, Width};
pub use saved::{PendingAccess, StateMachine};
pub use thread_end::ThreadEnd;
