//! The tableau: from a formula to the states and edges of its automaton.
//!
//! A state is the set of formulas that have to hold from now on. What a moment must be like, what
//! is left for the next moment, and which `U` are put off once more make an edge (the tableau of
//! Gerth, Peled, Vardi and Wolper in the form of Couvreur, with acceptance on edges). Edges that
//! ask for more than another one are left out.

use std::collections::BTreeMap;

use super::automaton::{Edge, TooLarge, contains};
use super::normal::{Id, Node, Normal, TRUE};

/// A formula whose automaton has more states than that is too much for any product.
const MOST_STATES: usize = 20_000;
/// More ways to satisfy a set of formulas than that at one moment, likewise.
const MOST_EDGES: usize = 20_000;
/// More cases than that to tell these ways apart, likewise.
const MOST_CASES: u32 = 5_000_000;

/// One way to satisfy a set of formulas at one moment.
#[derive(Clone, Debug, Default)]
struct Way {
    positive: u64,
    negative: u64,
    /// The formulas that have to hold from the next moment on, ascending.
    next: Vec<Id>,
    /// The `U` that are put off, by their bits.
    promised: u64,
}

impl Way {
    fn covers(&self, other: &Way) -> bool {
        contains(other.positive, self.positive)
            && contains(other.negative, self.negative)
            && contains(other.promised, self.promised)
            && self
                .next
                .iter()
                .all(|id| other.next.binary_search(id).is_ok())
    }

    fn postpone(&mut self, id: Id) {
        if let Err(at) = self.next.binary_search(&id) {
            self.next.insert(at, id);
        }
    }
}

pub(super) struct Tableau<'n> {
    normal: &'n Normal,
    /// The `U` that have been put off so far; their places are their bits.
    promises: Vec<Id>,
    /// How many cases were told apart.
    cases: u32,
}

impl<'n> Tableau<'n> {
    pub(super) fn new(normal: &'n Normal) -> Tableau<'n> {
        Tableau {
            normal,
            promises: Vec::new(),
            cases: 0,
        }
    }

    /// The edges of each state, the initial one first, and how many acceptance sets there are.
    pub(super) fn states(&mut self, whole: Id) -> Result<(Vec<Vec<Edge>>, u32), TooLarge> {
        let mut numbers = BTreeMap::new();
        let mut sets = vec![vec![whole]];
        numbers.insert(sets[0].clone(), 0);
        let mut states = Vec::new();
        while states.len() < sets.len() {
            let ways = self.ways(&sets[states.len()])?;
            let mut edges = Vec::with_capacity(ways.len());
            for way in ways {
                let fresh = sets.len() as u32;
                let to = *numbers.entry(way.next.clone()).or_insert_with(|| {
                    sets.push(way.next.clone());
                    fresh
                });
                edges.push(Edge {
                    positive: way.positive,
                    negative: way.negative,
                    missing: way.promised,
                    to,
                });
            }
            states.push(edges);
            if sets.len() > MOST_STATES {
                return Err(too_large());
            }
        }
        Ok((states, self.promises.len() as u32))
    }

    fn ways(&mut self, set: &[Id]) -> Result<Vec<Way>, TooLarge> {
        let mut ways = Vec::new();
        self.expand(set.to_vec(), &mut Vec::new(), Way::default(), &mut ways)?;
        Ok(ways)
    }

    /// All ways to satisfy what is in `todo` besides what `way` says already. `done` holds what was
    /// dealt with.
    fn expand(
        &mut self,
        mut todo: Vec<Id>,
        done: &mut Vec<Id>,
        mut way: Way,
        into: &mut Vec<Way>,
    ) -> Result<(), TooLarge> {
        let height = done.len();
        self.cases += 1;
        if self.cases > MOST_CASES {
            return Err(too_large());
        }
        while let Some(id) = todo.pop() {
            if done.contains(&id) {
                continue;
            }
            done.push(id);
            match self.normal.node(id) {
                Node::Constant(true) => {}
                Node::Constant(false) => {
                    done.truncate(height);
                    return Ok(());
                }
                Node::Literal(atom, sign) => {
                    let (own, opposite) = match sign {
                        true => (&mut way.positive, way.negative),
                        false => (&mut way.negative, way.positive),
                    };
                    *own |= 1 << atom;
                    if opposite >> atom & 1 == 1 {
                        done.truncate(height);
                        return Ok(());
                    }
                }
                Node::And(one, other) => todo.extend([one, other]),
                Node::Next(inner) => self.later(inner, &mut way),
                Node::Or(one, other) => {
                    let mut first = todo.clone();
                    first.push(one);
                    self.expand(first, done, way.clone(), into)?;
                    todo.push(other);
                }
                Node::Until(left, right) => {
                    let mut now = todo.clone();
                    now.push(right);
                    self.expand(now, done, way.clone(), into)?;
                    way.promised |= 1 << self.promise(id)?;
                    way.postpone(id);
                    todo.push(left);
                }
                Node::Release(left, right) => {
                    let mut now = todo.clone();
                    now.extend([left, right]);
                    self.expand(now, done, way.clone(), into)?;
                    way.postpone(id);
                    todo.push(right);
                }
            }
        }
        done.truncate(height);
        if into.iter().any(|old| old.covers(&way)) {
            return Ok(());
        }
        into.retain(|old| !way.covers(old));
        into.push(way);
        if into.len() > MOST_EDGES {
            return Err(too_large());
        }
        Ok(())
    }

    /// Splits formulas about the next moment into parts.
    fn later(&self, id: Id, way: &mut Way) {
        match self.normal.node(id) {
            Node::And(one, other) => {
                self.later(one, way);
                self.later(other, way);
            }
            _ if id == TRUE => {}
            _ => way.postpone(id),
        }
    }

    fn promise(&mut self, id: Id) -> Result<u32, TooLarge> {
        if let Some(at) = self.promises.iter().position(|&known| known == id) {
            return Ok(at as u32);
        }
        if self.promises.len() == 64 {
            return Err(too_large());
        }
        self.promises.push(id);
        Ok(self.promises.len() as u32 - 1)
    }
}

fn too_large() -> TooLarge {
    TooLarge(String::from(
        "the formula is too large: its automaton has too many states",
    ))
}
