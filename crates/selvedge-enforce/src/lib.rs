//! The library that programs with enforced schedules are linked with.
//!
//! The library itself is `src/rt`: real threads that wait for each other as a prefix file demands.
//! It is compiled apart from everything else, to one object file without the standard library
//! ([`OBJECT`]), which `selvedge irs build` links programs with. Functions that it defines as
//! `__wrap_NAME` are to be linked with the linker's `--wrap=NAME`.

// The same in the library and on the host.
#[path = "rt/composed.rs"]
mod composed;
#[path = "rt/hold.rs"]
pub mod hold;
mod notes;

pub use notes::{Chosen, Function, Notes, Policy, SYMBOL};

/// The symbol at the beginning of the memory that the library uses first, and its size and alignment.
pub const ARENA: (&str, usize, usize) = ("selvedge_arena", 64 << 10, 128);

/// The library, as a relocatable object.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/enforce.o"));

#[cfg(test)]
mod rt;
