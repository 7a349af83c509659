//! Formulas in negation normal form, each kept once.
//!
//! Only literals are negated; what is left of the operators is `&& || X U R`. Equal formulas have
//! equal numbers, and the obvious ones are simplified when they are made.

use std::collections::HashMap;

use super::formula::{Atom, Binary, Formula, Unary};

/// The number of a formula.
pub(super) type Id = u32;

/// `false`
pub(super) const FALSE: Id = 0;
/// `true`
pub(super) const TRUE: Id = 1;

/// A formula in negation normal form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Node {
    Constant(bool),
    /// The atom with this number, or its negation.
    Literal(u32, bool),
    And(Id, Id),
    Or(Id, Id),
    Next(Id),
    Until(Id, Id),
    Release(Id, Id),
}

/// All formulas so far.
pub(super) struct Normal {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Id>,
    atoms: Vec<Atom>,
}

impl Normal {
    /// None but the constants, over these atoms.
    pub(super) fn new(atoms: Vec<Atom>) -> Normal {
        let mut normal = Normal {
            nodes: Vec::new(),
            numbers: HashMap::new(),
            atoms,
        };
        normal.number(Node::Constant(false));
        normal.number(Node::Constant(true));
        normal
    }

    /// The formula with this number.
    pub(super) fn node(&self, id: Id) -> Node {
        self.nodes[id as usize]
    }

    /// The atoms that literals speak of.
    pub(super) fn into_atoms(self) -> Vec<Atom> {
        self.atoms
    }

    fn number(&mut self, node: Node) -> Id {
        if let Some(&id) = self.numbers.get(&node) {
            return id;
        }
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.numbers.insert(node, id);
        id
    }

    /// The normal form of `formula`, or of its negation.
    pub(super) fn of(&mut self, formula: &Formula, positive: bool) -> Id {
        match formula {
            Formula::Constant(value) => constant(*value == positive),
            Formula::Atom(atom) => {
                let at = self.atoms.iter().position(|known| known == atom);
                let at = at.expect("the atoms of the formula are known") as u32;
                self.number(Node::Literal(at, positive))
            }
            Formula::Unary(operator, operand) => {
                let is_not = *operator == Unary::Not;
                let operand = self.of(operand, positive != is_not);
                match (operator, positive) {
                    (Unary::Not, _) => operand,
                    (Unary::Next, _) => self.next(operand),
                    (Unary::Finally, true) | (Unary::Globally, false) => self.until(TRUE, operand),
                    (Unary::Globally, true) | (Unary::Finally, false) => {
                        self.release(FALSE, operand)
                    }
                }
            }
            Formula::Binary(operator, left, right) => {
                self.of_binary(*operator, left, right, positive)
            }
        }
    }

    fn of_binary(
        &mut self,
        operator: Binary,
        left: &Formula,
        right: &Formula,
        positive: bool,
    ) -> Id {
        if operator == Binary::Equals {
            let both = [self.of(left, true), self.of(right, positive)];
            let none = [self.of(left, false), self.of(right, !positive)];
            let both = self.and(both[0], both[1]);
            let none = self.and(none[0], none[1]);
            return self.or(both, none);
        }
        let implies = operator == Binary::Implies;
        let one = self.of(left, positive != implies);
        let other = self.of(right, positive);
        match (operator, positive) {
            (Binary::And, true) | (Binary::Or | Binary::Implies, false) => self.and(one, other),
            (Binary::And, false) | (Binary::Or | Binary::Implies, true) => self.or(one, other),
            (Binary::Until, true) | (Binary::Release, false) => self.until(one, other),
            (Binary::Release, true) | (Binary::Until, false) => self.release(one, other),
            // a W b = b R (a || b), and its negation is the strong release of the negations.
            (Binary::WeakUntil, true) | (Binary::StrongRelease, false) => {
                let either = self.or(one, other);
                self.release(other, either)
            }
            (Binary::StrongRelease, true) | (Binary::WeakUntil, false) => {
                let both = self.and(one, other);
                self.until(other, both)
            }
            (Binary::Equals, _) => unreachable!("dealt with above"),
        }
    }

    /// Whether it holds at one moment exactly if it holds at all: `G F` or `F G` of something.
    fn is_about_the_end(&self, id: Id) -> bool {
        match self.node(id) {
            Node::Release(FALSE, inner) => matches!(self.node(inner), Node::Until(TRUE, _)),
            Node::Until(TRUE, inner) => matches!(self.node(inner), Node::Release(FALSE, _)),
            _ => false,
        }
    }

    fn contradict(&self, one: Id, other: Id) -> bool {
        match (self.node(one), self.node(other)) {
            (Node::Literal(a, sign), Node::Literal(b, other)) => a == b && sign != other,
            _ => false,
        }
    }

    /// The operand of `F G`, or of `G F`.
    fn in_the_end(&self, id: Id, globally: bool) -> Option<Id> {
        match (self.node(id), globally) {
            (Node::Until(TRUE, inner), true) => match self.node(inner) {
                Node::Release(FALSE, operand) => Some(operand),
                _ => None,
            },
            (Node::Release(FALSE, inner), false) => match self.node(inner) {
                Node::Until(TRUE, operand) => Some(operand),
                _ => None,
            },
            _ => None,
        }
    }

    pub(super) fn and(&mut self, one: Id, other: Id) -> Id {
        let (one, other) = (one.min(other), one.max(other));
        if one == FALSE || self.contradict(one, other) {
            return FALSE;
        }
        if one == TRUE || one == other {
            return other;
        }
        if let (Some(a), Some(b)) = (self.in_the_end(one, true), self.in_the_end(other, true)) {
            let both = self.and(a, b);
            let always = self.release(FALSE, both);
            return self.until(TRUE, always);
        }
        self.number(Node::And(one, other))
    }

    pub(super) fn or(&mut self, one: Id, other: Id) -> Id {
        let (one, other) = (one.min(other), one.max(other));
        if one == TRUE || self.contradict(one, other) {
            return TRUE;
        }
        if one == FALSE || one == other {
            return other;
        }
        if let (Some(a), Some(b)) = (self.in_the_end(one, false), self.in_the_end(other, false)) {
            let either = self.or(a, b);
            let sometimes = self.until(TRUE, either);
            return self.release(FALSE, sometimes);
        }
        self.number(Node::Or(one, other))
    }

    fn next(&mut self, operand: Id) -> Id {
        if operand == TRUE || operand == FALSE || self.is_about_the_end(operand) {
            return operand;
        }
        self.number(Node::Next(operand))
    }

    fn until(&mut self, left: Id, right: Id) -> Id {
        let settled = right == TRUE || right == FALSE || self.is_about_the_end(right);
        let same = matches!(self.node(right), Node::Until(before, _) if before == left);
        if settled || same || left == FALSE || left == right {
            return right;
        }
        self.number(Node::Until(left, right))
    }

    fn release(&mut self, left: Id, right: Id) -> Id {
        let settled = right == TRUE || right == FALSE || self.is_about_the_end(right);
        let same = matches!(self.node(right), Node::Release(before, _) if before == left);
        if settled || same || left == TRUE || left == right {
            return right;
        }
        self.number(Node::Release(left, right))
    }
}

fn constant(value: bool) -> Id {
    if value { TRUE } else { FALSE }
}
