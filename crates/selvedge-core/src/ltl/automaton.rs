//! From formulas to automata.
//!
//! `tableau.rs` makes the states and edges. A run is accepting if no `U` is postponed forever.
//! This file removes states that lead nowhere, and merges states with equal edges.

use std::collections::HashMap;

use super::components::{Arc, Components, Digraph, components};
use super::formula::{Atom, Formula};
use super::normal::Normal;
use super::tableau::Tableau;

/// A generalised Büchi automaton with acceptance on edges. Its state zero is the initial one.
#[derive(Clone, Debug)]
pub struct Automaton {
    atoms: Vec<Atom>,
    states: Vec<Vec<Edge>>,
    sets: u32,
}

/// From one state of an automaton to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The atoms that must hold, by their bits.
    pub positive: u64,
    /// The atoms that must not hold.
    pub negative: u64,
    /// The acceptance sets that the edge does *not* belong to. A run is accepting if it passes
    /// infinitely often through each of them.
    pub missing: u64,
    /// The state it leads to.
    pub to: u32,
}

impl Edge {
    /// Whether it can be taken at a moment at which exactly the atoms of `letter` hold.
    pub fn allows(&self, letter: u64) -> bool {
        letter & self.positive == self.positive && letter & self.negative == 0
    }
}

/// Why there is no automaton for a formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge(pub String);

impl Automaton {
    /// The automaton that accepts the words in which `formula` holds (or, if `positive` is false,
    /// those in which it does not).
    pub fn new(formula: &Formula, positive: bool) -> Result<Automaton, TooLarge> {
        let atoms = formula.atoms();
        if atoms.len() > 64 {
            let count = atoms.len();
            return Err(TooLarge(format!(
                "the formula speaks of {count} propositions, 64 are the most"
            )));
        }
        let mut normal = Normal::new(atoms);
        let whole = normal.of(formula, positive);
        let (states, sets) = Tableau::new(&normal).states(whole)?;
        let mut automaton = Automaton {
            atoms: normal.into_atoms(),
            states,
            sets,
        };
        automaton.reduce();
        Ok(automaton)
    }

    /// The atoms that the bits of a letter stand for.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms
    }

    /// How many acceptance sets there are.
    pub fn sets(&self) -> u32 {
        self.sets
    }

    /// How many states there are.
    pub fn size(&self) -> usize {
        self.states.len()
    }

    /// The edges that leave a state.
    pub fn edges(&self, state: u32) -> &[Edge] {
        &self.states[state as usize]
    }

    /// Whether it accepts everything from this state on.
    pub fn accepts_all(&self, state: u32) -> bool {
        let all = Edge {
            positive: 0,
            negative: 0,
            missing: 0,
            to: state,
        };
        self.edges(state).contains(&all)
    }

    fn reduce(&mut self) {
        loop {
            let before = self.states.len();
            self.trim();
            self.merge();
            if self.states.len() == before {
                break;
            }
        }
        // Only sets that some edge does not belong to have to be watched.
        let used = self
            .states
            .iter()
            .flatten()
            .fold(0, |used, edge| used | edge.missing);
        for edge in self.states.iter_mut().flatten() {
            edge.missing = gather(edge.missing, used);
        }
        self.sets = used.count_ones();
    }

    /// Leaves out what lies on no way to an accepting cycle. Acceptance matters only where runs can
    /// come back.
    fn trim(&mut self) {
        let Components {
            component,
            accepting,
        } = components(&mut *self, 0).expect("an automaton is all there");
        let mut useful: Vec<bool> = component
            .iter()
            .map(|&component| accepting[component as usize])
            .collect();
        loop {
            let mut changed = false;
            for (state, edges) in self.states.iter().enumerate() {
                if !useful[state] && edges.iter().any(|edge| useful[edge.to as usize]) {
                    useful[state] = true;
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        for (state, edges) in self.states.iter_mut().enumerate() {
            edges.retain(|edge| useful[edge.to as usize]);
            for edge in edges {
                if component[edge.to as usize] != component[state] {
                    edge.missing = 0;
                }
            }
        }
        self.renumber();
    }

    /// States with equal edges become one.
    fn merge(&mut self) {
        let mut class = vec![0; self.states.len()];
        let mut count = 1;
        loop {
            let mut numbers = HashMap::new();
            let next: Vec<u32> = self
                .states
                .iter()
                .map(|edges| {
                    let mut signature: Vec<Edge> = edges
                        .iter()
                        .map(|&edge| Edge {
                            to: class[edge.to as usize],
                            ..edge
                        })
                        .collect();
                    signature.sort_unstable();
                    signature.dedup();
                    let number = numbers.len() as u32;
                    *numbers.entry(signature).or_insert(number)
                })
                .collect();
            class = next;
            if numbers.len() == count {
                break;
            }
            count = numbers.len();
        }
        let mut merged = vec![Vec::new(); count];
        for (state, edges) in self.states.iter().enumerate() {
            merged[class[state] as usize] = edges
                .iter()
                .map(|&edge| Edge {
                    to: class[edge.to as usize],
                    ..edge
                })
                .collect();
        }
        for edges in &mut merged {
            keep_least(edges, |one, other| {
                one.to == other.to
                    && contains(other.positive, one.positive)
                    && contains(other.negative, one.negative)
                    && contains(other.missing, one.missing)
            });
        }
        self.states = merged;
        self.renumber();
    }

    /// Keeps the states that the initial one leads to, in the order in which it does.
    fn renumber(&mut self) {
        let mut number: Vec<Option<u32>> = vec![None; self.states.len()];
        number[0] = Some(0);
        let mut order = vec![0];
        let mut next = 0;
        while next < order.len() {
            for edge in &self.states[order[next]] {
                let to = edge.to as usize;
                if number[to].is_none() {
                    number[to] = Some(order.len() as u32);
                    order.push(to);
                }
            }
            next += 1;
        }
        self.states = order
            .iter()
            .map(|&state| {
                let mut edges = std::mem::take(&mut self.states[state]);
                for edge in &mut edges {
                    edge.to = number[edge.to as usize].expect("its source is reachable");
                }
                edges
            })
            .collect();
    }
}

impl Digraph for Automaton {
    type Stop = std::convert::Infallible;

    fn arcs(&mut self, state: u32, into: &mut Vec<Arc>) -> Result<(), Self::Stop> {
        into.extend(self.edges(state).iter().map(|edge| Arc {
            to: edge.to,
            missing: u128::from(edge.missing),
        }));
        Ok(())
    }
}

/// The bits of `mask` at the places where `used` has one, close together.
fn gather(mask: u64, used: u64) -> u64 {
    let places = (0..64).filter(|place| used >> place & 1 == 1);
    places
        .enumerate()
        .fold(0, |packed, (to, from)| packed | (mask >> from & 1) << to)
}

/// Whether every bit of `part` is one of `all`.
pub(super) fn contains(all: u64, part: u64) -> bool {
    part & !all == 0
}

/// Leaves out what another one makes superfluous; of two that do so to each other, the first one stays.
fn keep_least<T: Clone>(all: &mut Vec<T>, covers: impl Fn(&T, &T) -> bool) {
    let mut kept: Vec<T> = Vec::with_capacity(all.len());
    for new in all.drain(..) {
        if !kept.iter().any(|old| covers(old, &new)) {
            kept.retain(|old| !covers(&new, old));
            kept.push(new);
        }
    }
    *all = kept;
}
