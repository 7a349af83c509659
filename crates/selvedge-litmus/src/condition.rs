//! The question that a litmus test asks about its final states.

use std::fmt;

use crate::code::{Register, Variable};

/// How a condition is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Some final state satisfies it.
    Exists,
    /// None does.
    NotExists,
    /// All do.
    Forall,
}

impl fmt::Display for Quantifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Quantifier::Exists => "exists",
            Quantifier::NotExists => "~exists",
            Quantifier::Forall => "forall",
        })
    }
}

/// Something that has a value in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Register(usize, Register),
    Variable(Variable),
}

/// A condition on final states.
#[derive(Clone, Debug)]
pub struct Condition {
    /// How it is meant.
    pub quantifier: Quantifier,
    pub(crate) formula: Formula,
    /// The text of the formula.
    pub text: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Formula {
    Truth(bool),
    Equal(Place, i64),
    Not(Box<Formula>),
    And(Box<Formula>, Box<Formula>),
    Or(Box<Formula>, Box<Formula>),
}

impl Formula {
    pub(crate) fn holds(&self, value: &impl Fn(Place) -> i64) -> bool {
        match self {
            Formula::Truth(truth) => *truth,
            Formula::Equal(place, number) => value(*place) == *number,
            Formula::Not(inner) => !inner.holds(value),
            Formula::And(left, right) => left.holds(value) && right.holds(value),
            Formula::Or(left, right) => left.holds(value) || right.holds(value),
        }
    }

    pub(crate) fn places(&self, into: &mut Vec<Place>) {
        match self {
            Formula::Truth(_) => {}
            Formula::Equal(place, _) => into.push(*place),
            Formula::Not(inner) => inner.places(into),
            Formula::And(left, right) | Formula::Or(left, right) => {
                left.places(into);
                right.places(into);
            }
        }
    }
}
