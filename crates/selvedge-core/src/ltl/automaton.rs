//! From formulas to automata.
//!
//! A state is the set of formulas that have to hold from now on. What a moment must be like, what is left for the
//! next moment, and which `U` are put off once more make an edge (the tableau of Gerth, Peled, Vardi and Wolper in
//! the form of Couvreur, with acceptance on edges). A run is accepting if no `U` is put off for ever. Edges
//! that ask for more than another one are left out, states that lead nowhere too, and states with equal edges are
//! one.

use std::collections::{BTreeMap, HashMap};

use super::components::{Arc, Components, Digraph, components};
use super::formula::{Atom, Formula};
use super::normal::{Id, Node, Normal, TRUE};

/// A formula whose automaton has more states than that is too much for any product.
const MOST_STATES: usize = 20_000;
/// More ways to satisfy a set of formulas than that at one moment, likewise.
const MOST_EDGES: usize = 20_000;
/// More cases than that to tell these ways apart, likewise.
const MOST_CASES: u32 = 5_000_000;

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
    /// The acceptance sets that the edge does *not* belong to. A run is accepting if it passes infinitely often
    /// through each of them.
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
    /// The automaton that accepts the words in which `formula` holds (or, if `positive` is false, those in which it
    /// does not).
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
        let mut tableau = Tableau {
            normal: &normal,
            promises: Vec::new(),
            cases: 0,
        };
        let (states, sets) = tableau.states(whole)?;
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

    /// Leaves out what lies on no way to an accepting cycle. Acceptance matters only where runs can come back.
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

fn contains(all: u64, part: u64) -> bool {
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

/// One way to satisfy a set of formulas at one moment.
#[derive(Clone, Debug, Default)]
struct Way {
    positive: u64,
    negative: u64,
    /// What has to hold from the next moment on, ascending.
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

struct Tableau<'n> {
    normal: &'n Normal,
    /// The `U` that have been put off so far; their places are their bits.
    promises: Vec<Id>,
    /// How many cases were told apart.
    cases: u32,
}

impl Tableau<'_> {
    fn states(&mut self, whole: Id) -> Result<(Vec<Vec<Edge>>, u32), TooLarge> {
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

    /// All ways to satisfy what is in `todo` besides what `way` says already. `done` holds what was dealt with.
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

    /// What holds next holds in parts.
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
