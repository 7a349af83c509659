//! Memory that is no atomic: accesses that nothing orders are reported.

mod plain;
mod unsafe_cell;

pub use plain::Cell;
pub use unsafe_cell::{ConstPtr, MutPtr, UnsafeCell};
