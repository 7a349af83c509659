//! The graph that a formula is checked on: states, and the moves between them.

use crate::ids::ThreadId;

/// A move from one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The state it leads to.
    pub to: u32,
    /// The thread that moves; `None` once the program has ended.
    pub thread: Option<ThreadId>,
    /// The number of the alternative that the thread takes.
    pub choice: u32,
    /// Whether it passes a progress mark.
    pub progress: bool,
}

/// The states of a program as they are discovered. State zero is the initial one.
pub trait Graph {
    /// Why it cannot tell any more.
    type Stop;

    /// Replaces the contents of `into` by the moves that leave `state`. Two moves of the same
    /// thread differ in their choice.
    fn moves(&mut self, state: u32, into: &mut Vec<Move>) -> Result<(), Self::Stop>;

    /// The label of `state`: one bit for each proposition that was asked about.
    fn label(&self, state: u32) -> u64;
}

/// An execution that never ends: moves up to a state, and then a cycle of moves for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lasso {
    /// From the initial state to where the cycle begins.
    pub prefix: Vec<Move>,
    /// From there back to there; at least one move.
    pub cycle: Vec<Move>,
    /// After this many moves nothing that follows can change the answer, if there is such a point.
    pub decided: Option<usize>,
}

impl Lasso {
    /// The whole of it, the cycle once.
    pub fn moves(&self) -> impl Iterator<Item = &Move> {
        self.prefix.iter().chain(&self.cycle)
    }
}
