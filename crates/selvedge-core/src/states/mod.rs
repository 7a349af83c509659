//! Searches over states that are kept: programs that never end are as good as others here.
//!
//! A [`StateMachine`](crate::StateMachine) can be taken back to a state it was in before, so a search need not know executions, only
//! states and the [`Step`]s between them. [`States`] gives each state a number and goes back to any of them.

mod chain;
mod hash;
mod index;
mod kept;
mod parts;
mod space;

pub use kept::{Reached, StateId, States};
pub use space::{Identity, Step};
