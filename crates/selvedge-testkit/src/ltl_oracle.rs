//! Temporal logic on programs by a construction of its own: every state of the program, every move,
//! and every assignment of truth values to the temporal subformulas (Lichtenstein and Pnueli). No
//! automaton, no clever search.

use std::collections::{HashMap, HashSet};

use selvedge_core::ltl::{Atom, Binary, Formula, Move, Unary};
use selvedge_core::{Machine, Op, Pending, StateMachine, Stop, ThreadId};

use crate::reach::{Sort, sort, successors};
use crate::state_script::StateScript;

/// All states of a program and the moves between them.
pub struct Explicit {
    states: Vec<StateScript>,
    moves: Vec<Vec<Move>>,
    /// Whether something is wrong in one of them.
    pub fails: bool,
}

impl Explicit {
    /// Visits every state of `machine`. `None` if there are more than `limit`.
    pub fn new(machine: &StateScript, limit: usize) -> Option<Explicit> {
        let mut start = machine.clone();
        start.reset();
        let mut numbers = HashMap::from([(start.state(), 0)]);
        let mut all = Explicit {
            states: vec![start],
            moves: Vec::new(),
            fails: false,
        };
        while all.moves.len() < all.states.len() {
            let at = all.moves.len();
            let machine = all.states[at].clone();
            let threads = (0..machine.threads() as u32).map(ThreadId);
            let assumed = Pending::Stopped(Stop::Assumed);
            let interesting = threads
                .clone()
                .all(|thread| machine.pending(thread) != assumed);
            let mut moves = Vec::new();
            match sort(&machine) {
                Sort::Complete if interesting => moves.push(Move {
                    to: at as u32,
                    thread: None,
                    choice: 0,
                    progress: false,
                }),
                Sort::Alright if interesting => {
                    for (thread, choice, next) in successors(&machine) {
                        let fresh = all.states.len();
                        let to = *numbers.entry(next.state()).or_insert(fresh);
                        if to == fresh {
                            all.states.push(next);
                        }
                        moves.push(Move {
                            to: to as u32,
                            thread: Some(thread),
                            choice,
                            progress: machine.marks_progress(thread),
                        });
                    }
                }
                Sort::Stuck | Sort::Failed | Sort::Race => all.fails = true,
                Sort::Alright | Sort::Complete | Sort::Blocked => {}
            }
            all.moves.push(moves);
            if all.states.len() > limit {
                return None;
            }
        }
        Some(all)
    }

    /// How many states there are.
    pub fn size(&self) -> usize {
        self.states.len()
    }

    /// Whether some execution, a weakly fair one if that is asked for, does not satisfy `formula`.
    pub fn violates(&self, formula: &Formula, fair: bool) -> bool {
        let mut temporal = Vec::new();
        subformulas(formula, &mut temporal);
        Tableau {
            program: self,
            temporal,
            fair,
        }
        .violates(formula)
    }

    /// Whether the atom holds when `by` is taken in `state`.
    pub fn holds(&self, atom: &Atom, state: u32, by: &Move) -> bool {
        let machine = &self.states[state as usize];
        match atom {
            Atom::Named(name) => {
                let known = machine.propositions();
                let place = known.iter().position(|known| known == name);
                machine.clone().holds(place.expect("it was defined"))
            }
            Atom::Expression(_) => unreachable!("scripted programs have none"),
            Atom::Moves(who) => who.is(by.thread),
            Atom::Progress(who) => by.progress && who.is(by.thread),
            Atom::Enabled(thread) => self.is_enabled(state, *thread),
            Atom::Ended(thread) => {
                thread.index() >= machine.threads() || machine.pending(*thread).has_ended()
            }
            Atom::Joins(thread) => {
                thread.index() < machine.threads()
                    && matches!(machine.pending(*thread), Pending::Op(Op::Join { .. }))
            }
        }
    }

    /// Whether `thread` can move in `state`.
    pub fn is_enabled(&self, state: u32, thread: ThreadId) -> bool {
        let mut moves = self.moves[state as usize].iter();
        moves.any(|by| by.thread == Some(thread))
    }

    /// Where the moves lead to, from the first state on; panics if one of them is not possible. The
    /// numbers of states are this construction's own.
    pub fn follow(&self, moves: &[Move]) -> Vec<u32> {
        let mut at = 0;
        let mut passed = vec![at];
        for by in moves {
            let mut all = self.moves[at as usize].iter();
            let same = |known: &&Move| {
                (known.thread, known.choice, known.progress) == (by.thread, by.choice, by.progress)
            };
            at = all.find(same).expect("the move is possible").to;
            passed.push(at);
        }
        passed
    }

    fn threads(&self) -> impl Iterator<Item = ThreadId> + use<> {
        (0..self.states[0].threads() as u32).map(ThreadId)
    }
}

/// The subformulas whose outermost operator is temporal, each once.
fn subformulas<'f>(formula: &'f Formula, into: &mut Vec<&'f Formula>) {
    let temporal = match formula {
        Formula::Constant(_) | Formula::Atom(_) => false,
        Formula::Unary(operator, operand) => {
            subformulas(operand, into);
            *operator != Unary::Not
        }
        Formula::Binary(operator, left, right) => {
            subformulas(left, into);
            subformulas(right, into);
            !matches!(
                operator,
                Binary::And | Binary::Or | Binary::Implies | Binary::Equals
            )
        }
    };
    if temporal && !into.contains(&formula) {
        into.push(formula);
    }
}

/// How many temporal subformulas a formula has.
pub fn temporal_size(formula: &Formula) -> usize {
    let mut all = Vec::new();
    subformulas(formula, &mut all);
    all.len()
}

struct Tableau<'a> {
    program: &'a Explicit,
    temporal: Vec<&'a Formula>,
    fair: bool,
}

/// A state, one of its moves, and which temporal subformulas hold then.
type Node = (u32, usize, u32);

impl Tableau<'_> {
    fn violates(&self, formula: &Formula) -> bool {
        let first = (0..self.program.moves[0].len())
            .flat_map(|by| self.assignments().map(move |values| (0, by, values)));
        let first: Vec<Node> = first.filter(|&node| !self.value(formula, node)).collect();
        let mut arcs: HashMap<Node, Vec<Node>> = HashMap::new();
        let mut open = first;
        while let Some(node) = open.pop() {
            arcs.entry(node).or_insert_with(|| {
                let next = self.next(node);
                open.extend(&next);
                next
            });
        }
        // Nodes without a successor are on no cycle and are removed.
        loop {
            let known: HashSet<Node> = arcs.keys().copied().collect();
            for next in arcs.values_mut() {
                next.retain(|node| known.contains(node));
            }
            arcs.retain(|_, next| !next.is_empty());
            if arcs.len() == known.len() {
                break;
            }
        }
        let mut back: HashMap<Node, Vec<Node>> = HashMap::new();
        for (&node, next) in &arcs {
            for &to in next {
                back.entry(to).or_default().push(node);
            }
        }
        let mut seen: HashSet<Node> = HashSet::new();
        for &node in arcs.keys() {
            if seen.contains(&node) {
                continue;
            }
            let ahead = reached(&arcs, node);
            let behind = reached(&back, node);
            let component: Vec<Node> = ahead.intersection(&behind).copied().collect();
            seen.insert(node);
            seen.extend(&component);
            if !component.is_empty() && self.is_fulfilled(&component) {
                return true;
            }
        }
        false
    }

    fn assignments(&self) -> std::ops::Range<u32> {
        0..1 << self.temporal.len()
    }

    fn next(&self, node: Node) -> Vec<Node> {
        let (state, by, _) = node;
        let to = self.program.moves[state as usize][by].to;
        let moves = 0..self.program.moves[to as usize].len();
        let all = moves.flat_map(|by| self.assignments().map(move |values| (to, by, values)));
        all.filter(|&next| self.follows(node, next)).collect()
    }

    /// Whether the formula holds, if the temporal ones hold that the node says.
    fn value(&self, formula: &Formula, node: Node) -> bool {
        if let Some(place) = self.temporal.iter().position(|known| *known == formula) {
            return node.2 >> place & 1 == 1;
        }
        match formula {
            Formula::Constant(value) => *value,
            Formula::Atom(atom) => {
                let by = &self.program.moves[node.0 as usize][node.1];
                self.program.holds(atom, node.0, by)
            }
            Formula::Unary(_, operand) => !self.value(operand, node),
            Formula::Binary(operator, left, right) => {
                let (left, right) = (self.value(left, node), self.value(right, node));
                match operator {
                    Binary::And => left && right,
                    Binary::Or => left || right,
                    Binary::Implies => !left || right,
                    _ => left == right,
                }
            }
        }
    }

    /// Whether what holds now fits what holds next.
    fn follows(&self, node: Node, next: Node) -> bool {
        self.temporal.iter().all(|&formula| {
            let later = self.value(formula, next);
            let expected = match formula {
                Formula::Unary(Unary::Next, operand) => self.value(operand, next),
                Formula::Unary(Unary::Finally, operand) => self.value(operand, node) || later,
                Formula::Unary(_, operand) => self.value(operand, node) && later,
                Formula::Binary(operator, left, right) => {
                    let (left, right) = (self.value(left, node), self.value(right, node));
                    match operator {
                        Binary::Until | Binary::WeakUntil => right || (left && later),
                        _ => right && (left || later),
                    }
                }
                Formula::Constant(_) | Formula::Atom(_) => unreachable!("not temporal"),
            };
            self.value(formula, node) == expected
        })
    }

    /// Whether going round in the component for ever keeps every promise, and is fair if it has to be.
    fn is_fulfilled(&self, component: &[Node]) -> bool {
        let promises = self.temporal.iter().all(|&formula| {
            component.iter().any(|&node| {
                let now = self.value(formula, node);
                let value = |formula| self.value(formula, node);
                match formula {
                    Formula::Unary(Unary::Finally, operand) => !now || value(operand),
                    Formula::Unary(Unary::Globally, operand) => now || !value(operand),
                    Formula::Binary(Binary::Until, _, right) => !now || value(right),
                    Formula::Binary(Binary::StrongRelease, left, right) => {
                        !now || (value(left) && value(right))
                    }
                    Formula::Binary(Binary::Release, _, right) => now || !value(right),
                    Formula::Binary(Binary::WeakUntil, left, right) => {
                        now || (!value(left) && !value(right))
                    }
                    _ => true,
                }
            })
        });
        let treated = |thread: ThreadId| {
            component.iter().any(|&(state, by, _)| {
                self.program.moves[state as usize][by].thread == Some(thread)
                    || !self.program.is_enabled(state, thread)
            })
        };
        promises && (!self.fair || self.program.threads().all(treated))
    }
}

/// The states that can be reached in one step or more.
fn reached(arcs: &HashMap<Node, Vec<Node>>, from: Node) -> HashSet<Node> {
    let mut reached = HashSet::new();
    let mut open = vec![from];
    while let Some(node) = open.pop() {
        for &next in arcs.get(&node).into_iter().flatten() {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}
