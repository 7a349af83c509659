//! The checker behind the types: one model execution, its threads as fibers, and what they ask for.
//!
//! The threads of a model are fibers on the one OS thread that called [`crate::model`]. Whatever a
//! fiber needs of the checker runs on the *host* stack (see [`host`]), so that a fiber's own stack
//! holds nothing but what the program under test put there: that is what lets [`spin`] tell whether
//! a loop makes progress.
//!
//! All `unsafe` code of the crate that is not part of an interface lives here.
#![cfg_attr(
    not(feature = "allocator"),
    allow(dead_code, reason = "only the allocator uses some of it")
)]

mod accesses;
mod arena;
mod block;
mod blocks;
mod call_stack;
mod confine;
mod crash;
mod determinism;
mod engine;
mod gate;
mod gone;
mod hook;
pub(crate) mod machine;
pub(crate) mod memory;
mod outside;
mod owners;
mod panic_count;
mod place;
mod portable;
mod process;
mod race;
mod reach;
pub(crate) mod shared;
mod slot;
mod spin;
mod stack;
mod state;
mod statics;
mod stop;
mod thread;
mod trouble;
mod values;

pub(crate) use accesses::PROTECTED_RUNS;
pub(crate) use engine::{active, host, spawn, visible};
pub(crate) use gone::Handle;
pub(crate) use machine::{Limits, RustMachine};
pub(crate) use place::Object;
pub(crate) use process::{peak_memory, start_again};
pub(crate) use race::{AccessKind, CellId};
pub(crate) use selvedge_core::Site;
pub(crate) use slot::Slot;
pub(crate) use stop::{
    assume_nothing, begin_access, end_access, inconsistent, misses_spuriously, new_cell, refuse,
    wakes_spuriously,
};
pub(crate) use trouble::{SourcePlace, site_of};
