//! Litmus tests in the C syntax of herd (Alglave, Maranget and Tautschnig, "Herding cats"): parses
//! them, runs them under a memory model with the optimal search, and tells which final states there
//! are, in herd's words.
//!
//! Supported are threads with integer registers, expressions, `if` and `else`, the functions of `<stdatomic.h>` with
//! and without explicit order, fences, and plain accesses `*x`, which count as relaxed ones. Loops and everything else
//! are refused by name.
#![forbid(unsafe_code)]

mod asked;
mod code;
mod condition;
mod lex;
mod machine;
mod outcome;
mod parse;
mod statements;

pub use condition::{Condition, Quantifier};
pub use outcome::{Outcome, State, run};
pub use parse::{Error, Test, parse};
