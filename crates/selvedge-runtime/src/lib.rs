//! Runs C and C++ programs natively under the control of an explorer.
//!
//! The program is compiled with the compiler's ThreadSanitizer instrumentation, linked into a shared
//! object together with small stubs that jump through a table (see [`support`]), loaded into this
//! process, and run on fibers. [`NativeMachine`] drives it through [`selvedge_core::Machine`].

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("Selvedge runs programs on x86-64 Linux only");

mod abi;
mod access;
mod agreed;
mod arena;
mod boot;
mod current;
mod cxx;
mod environment;
mod float;
mod frames;
mod gate;
mod heap;
mod inspect;
mod layout;
mod leaks;
mod lifetimes;
mod lines;
mod liveness;
mod loader;
mod locals;
mod locations;
mod machine;
mod memory;
mod names;
mod outside;
mod overlooked;
pub mod peers;
mod portable;
mod posix;
mod problem;
pub mod process;
mod protection;
mod quiet;
mod retry;
mod rounds;
mod runtime;
mod settings;
mod shadow;
mod signals;
mod snapshot;
mod spin;
mod states;
pub mod support;
pub mod symbols;
mod thread;
mod tsan;
mod undo;
mod visible;
mod visits;
mod watch;
mod weak;

use selvedge_fiber as fiber;

pub use heap::HeapBlock;
pub use loader::{FLOAT_SECTION, LoadError};
pub use locations::Extent;
pub use machine::NativeMachine;
pub use overlooked::Overlooked;
pub use protection::Protection;
pub use rounds::Unroll;
pub use settings::{Plain, Settings};
