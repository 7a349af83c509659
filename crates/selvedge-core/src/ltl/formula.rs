//! Formulas of linear temporal logic.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::ThreadId;

/// A statement about one moment of an execution: about a state and the step that is taken in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Atom {
    /// A proposition that the program named.
    Named(String),
    /// An expression in the language of the program, as it was written.
    Expression(String),
    /// A thread takes the step.
    Moves(Who),
    /// The step passes a progress mark.
    Progress(Who),
    /// The thread can take a step.
    Enabled(ThreadId),
    /// The thread has ended, or does not exist yet.
    Ended(ThreadId),
    /// The thread waits for the end of other threads.
    Joins(ThreadId),
}

impl Atom {
    /// Whether it says something about the state alone.
    pub fn is_of_state(&self) -> bool {
        match self {
            Atom::Named(_) | Atom::Expression(_) | Atom::Ended(_) | Atom::Joins(_) => true,
            Atom::Moves(_) | Atom::Progress(_) | Atom::Enabled(_) => false,
        }
    }
}

/// The thread of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Who {
    /// A step of any thread.
    Any,
    /// A step of this thread.
    Thread(ThreadId),
}

impl Who {
    /// Whether a step of `thread` is meant. No thread takes the step when the program has ended.
    pub fn is(self, thread: Option<ThreadId>) -> bool {
        match (self, thread) {
            (_, None) => false,
            (Who::Any, Some(_)) => true,
            (Who::Thread(meant), Some(thread)) => meant == thread,
        }
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Who::Any => f.write_str("any"),
            Who::Thread(thread) => write!(f, "{thread}"),
        }
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Named(name) if super::parse::is_name(name) => f.write_str(name),
            Atom::Named(name) => write!(f, "\"{name}\""),
            Atom::Expression(text) => write!(f, "{{{text}}}"),
            Atom::Moves(who) => write!(f, "{who}.moves"),
            Atom::Progress(who) => write!(f, "{who}.progress"),
            Atom::Enabled(thread) => write!(f, "{thread}.enabled"),
            Atom::Ended(thread) => write!(f, "{thread}.ended"),
            Atom::Joins(thread) => write!(f, "{thread}.joins"),
        }
    }
}

/// An operator with one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Unary {
    /// `!`
    Not,
    /// `X`: at the next moment.
    Next,
    /// `F`: now or at some later moment.
    Finally,
    /// `G`: now and at every later moment.
    Globally,
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Binary {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `->`
    Implies,
    /// `<->`
    Equals,
    /// `U`: the right side comes to hold, and the left side holds until then.
    Until,
    /// `W`: the same, or the left side holds for ever.
    WeakUntil,
    /// `R`: the right side holds up to and with the moment when the left side does, or for ever.
    Release,
    /// `M`: the same, but not for ever.
    StrongRelease,
}

/// A formula of linear temporal logic.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Formula {
    /// `true` or `false`.
    Constant(bool),
    /// Something about one moment.
    Atom(Atom),
    /// An operator with one operand.
    Unary(Unary, Box<Formula>),
    /// An operator with two operands.
    Binary(Binary, Box<Formula>, Box<Formula>),
}

impl Formula {
    /// `operator operand`
    pub fn unary(operator: Unary, operand: Formula) -> Formula {
        Formula::Unary(operator, Box::new(operand))
    }

    /// `left operator right`
    pub fn binary(operator: Binary, left: Formula, right: Formula) -> Formula {
        Formula::Binary(operator, Box::new(left), Box::new(right))
    }

    /// `operand` holds again and again.
    pub fn infinitely_often(operand: Formula) -> Formula {
        Formula::unary(Unary::Globally, Formula::unary(Unary::Finally, operand))
    }

    /// The atoms it speaks of, each once, in the order in which they are written.
    pub fn atoms(&self) -> Vec<Atom> {
        let mut atoms = Vec::new();
        self.collect(&mut atoms);
        atoms
    }

    fn collect(&self, into: &mut Vec<Atom>) {
        match self {
            Formula::Constant(_) => {}
            Formula::Atom(atom) if into.contains(atom) => {}
            Formula::Atom(atom) => into.push(atom.clone()),
            Formula::Unary(_, operand) => operand.collect(into),
            Formula::Binary(_, left, right) => {
                left.collect(into);
                right.collect(into);
            }
        }
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Formula::Constant(value) => write!(f, "{value}"),
            Formula::Atom(atom) => write!(f, "{atom}"),
            Formula::Unary(operator, operand) => {
                let sign = match operator {
                    Unary::Not => "!",
                    Unary::Next => "X ",
                    Unary::Finally => "F ",
                    Unary::Globally => "G ",
                };
                write!(f, "{sign}{operand}")
            }
            Formula::Binary(operator, left, right) => {
                let sign = match operator {
                    Binary::And => "&&",
                    Binary::Or => "||",
                    Binary::Implies => "->",
                    Binary::Equals => "<->",
                    Binary::Until => "U",
                    Binary::WeakUntil => "W",
                    Binary::Release => "R",
                    Binary::StrongRelease => "M",
                };
                write!(f, "({left} {sign} {right})")
            }
        }
    }
}
