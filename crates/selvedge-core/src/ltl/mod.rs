//! Properties of executions that never end, in linear temporal logic.
//!
//! A formula speaks of the *moments* of an execution: at each of them the program is in a state and
//! takes a step. An execution that ends stays in its last state for ever, and no thread takes those
//! steps. So every execution is an infinite sequence of moments, and a formula holds or does not
//! hold at the first of them. A program satisfies a formula if all of its executions do; those that
//! a failed assumption ends do not count. With weak fairness only those executions count in which
//! every thread that can move from some moment on moves again and again.
//!
//! [`parse`] reads a formula, [`Automaton`] is an automaton for its negation, and [`find`] looks
//! for an execution that the automaton accepts: a lasso. `components.rs` holds the complete search,
//! `directed.rs` the heuristic one before it (Štill, Ročkai and Barnat, "Context-Switch-Directed
//! Verification in DIVINE", §3.3).

mod automaton;
mod check;
mod components;
mod directed;
mod formula;
mod graph;
mod normal;
mod parse;
mod product;
mod program;
mod shortest;
mod tableau;

pub use automaton::{Automaton, Edge, TooLarge};
pub use check::{Property, Settings, search};
pub use formula::{Atom, Binary, Formula, Unary, Who};
pub use graph::{Graph, Lasso, Move};
pub use parse::{ParseError, parse};
pub use program::{Halt, MOST_THREADS, Program};

use components::components;
use product::Product;

/// How to look for a lasso.
#[derive(Clone, Copy, Debug, Default)]
pub struct Find {
    /// Only lassos that are weakly fair.
    pub fair: bool,
    /// Whether the heuristic pass is left out.
    pub complete_only: bool,
    /// How many context switches the heuristic pass goes; the complete search knows no bound.
    pub switches: Option<u32>,
}

/// An execution of `graph` that `automaton` accepts, if there is one. `labels` says what the bits
/// of the graph's labels stand for.
pub fn find<G: Graph>(
    graph: &mut G,
    automaton: &Automaton,
    labels: &[Atom],
    how: Find,
) -> Result<Option<Lasso>, G::Stop> {
    let mut product = Product::new(graph, automaton, labels, how.fair);
    if !how.complete_only
        && let Some(lasso) = directed::search(&mut product, automaton.sets(), how.switches)?
    {
        return Ok(Some(lasso));
    }
    let found = components(&mut product, 0)?;
    shortest::lasso(&mut product, &found)
}
