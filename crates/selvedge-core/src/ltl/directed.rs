//! The first pass: an accepting cycle with few context switches, if one shows itself.
//!
//! The product is explored in layers of context switches (Štill, Ročkai and Barnat, Algorithm 1,
//! with one incoming thread per node). Each node knows its last accepting predecessor on the way it
//! was found (MAP without repropagation, §3.3). The paper reports a cycle when an arc leads to that
//! very predecessor. With acceptance on arcs nearly every node of a typical automaton is such a
//! predecessor, and only cycles of one step would be seen. So this pass asks whether the arc leads
//! back to *any* node on the way, if an accepting arc lies in between, and walks back to be sure;
//! the walks together are limited to a multiple of the arcs seen, which keeps the pass linear.
//! Missing a cycle is no harm: a complete search follows.

use super::components::Arc;
use super::graph::{Graph, Lasso, Move};
use super::product::Product;
use crate::ids::ThreadId;

/// The most nodes that are walked back over for each arc.
const WALK: u64 = 8;

const NONE: u32 = u32::MAX;

/// How a node was found.
#[derive(Clone, Copy)]
struct Found {
    /// When it was queued; `NONE` if it still waits for the next layer or was not met.
    turn: u32,
    /// The turn of the last node on the way here, this one included, that an accepting arc leads
    /// to; zero if there is none.
    accepted: u32,
    parent: u32,
    by: Move,
    missing: u128,
}

struct Pass<'a, 'p, G> {
    product: &'a mut Product<'p, G>,
    sets: u32,
    found: Vec<Option<Found>>,
    turns: u32,
    budget: u64,
}

/// Looks for an accepting cycle, up to this many context switches.
pub(super) fn search<G: Graph>(
    product: &mut Product<'_, G>,
    sets: u32,
    switches: Option<u32>,
) -> Result<Option<Lasso>, G::Stop> {
    let mut pass = Pass {
        product,
        sets,
        found: Vec::new(),
        turns: 0,
        budget: 0,
    };
    let mut layer = vec![0];
    let start = Move {
        to: 0,
        thread: None,
        choice: 0,
        progress: false,
    };
    pass.found.push(Some(Found {
        turn: NONE,
        accepted: 0,
        parent: NONE,
        by: start,
        missing: u128::MAX,
    }));
    let mut switched = 0;
    while !layer.is_empty() && switches.is_none_or(|most| switched <= most) {
        let mut next = Vec::new();
        if let Some(lasso) = pass.layer(layer, &mut next)? {
            return Ok(Some(lasso));
        }
        layer = next;
        switched += 1;
    }
    Ok(None)
}

impl<G: Graph> Pass<'_, '_, G> {
    /// Explores what can be reached from `first` without a context switch.
    fn layer(&mut self, first: Vec<u32>, later: &mut Vec<u32>) -> Result<Option<Lasso>, G::Stop> {
        let mut queue = Vec::with_capacity(first.len());
        for node in first {
            self.enqueue(node, &mut queue);
        }
        let mut successors = Vec::new();
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            successors.clear();
            successors.extend_from_slice(self.product.successors(node)?);
            self.found.resize(self.product.len(), None);
            let own = self.known(node);
            for successor in &successors {
                self.budget += WALK;
                let to = successor.arc.to;
                let entry = Found {
                    turn: NONE,
                    accepted: own.accepted,
                    parent: node,
                    by: successor.by,
                    missing: successor.arc.missing,
                };
                match self.found[to as usize] {
                    Some(seen) if seen.turn != NONE => {
                        if self.closes(node, successor.arc) {
                            let (prefix, cycle) = self.ways(node, to, successor.by);
                            return Ok(Some(self.product.lasso(prefix, cycle)?));
                        }
                    }
                    met => {
                        if switches(own.by.thread, successor.by.thread) {
                            if met.is_none() {
                                self.found[to as usize] = Some(entry);
                                later.push(to);
                            }
                        } else {
                            self.found[to as usize] = Some(entry);
                            self.enqueue(to, &mut queue);
                        }
                    }
                }
            }
        }
        Ok(None)
    }

    fn known(&self, node: u32) -> Found {
        self.found[node as usize].expect("nodes are queued when they are found")
    }

    fn enqueue(&mut self, node: u32, queue: &mut Vec<u32>) {
        let found = self.found[node as usize].as_mut().expect("it was met");
        if found.turn == NONE {
            found.turn = self.turns;
            self.turns += 1;
            if accepts(found.missing) {
                found.accepted = found.turn;
            }
            queue.push(node);
        }
    }

    /// Whether the arc closes an accepting cycle with the way on which `from` was found.
    fn closes(&mut self, from: u32, arc: Arc) -> bool {
        let target = self.known(arc.to).turn;
        let own = self.known(from);
        let between = self.sets > 1 || accepts(arc.missing) || own.accepted > target;
        if own.turn < target || !between {
            return false;
        }
        let (mut at, mut missing) = (from, arc.missing);
        while at != arc.to {
            let found = self.known(at);
            if found.turn <= target || self.budget == 0 {
                return false;
            }
            self.budget -= 1;
            missing &= found.missing;
            at = found.parent;
        }
        missing == 0
    }

    /// To the node where the cycle begins, and round it.
    fn ways(&self, last: u32, first: u32, by: Move) -> (Vec<Move>, Vec<Move>) {
        let mut cycle = self.way(first, last);
        cycle.push(by);
        (self.way(0, first), cycle)
    }

    /// The moves from a node to one that was found on a way from it.
    fn way(&self, from: u32, to: u32) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut at = to;
        while at != from {
            let found = self.known(at);
            moves.push(found.by);
            at = found.parent;
        }
        moves.reverse();
        moves
    }
}

fn switches(before: Option<ThreadId>, now: Option<ThreadId>) -> bool {
    before.is_some() && now.is_some() && before != now
}

/// Whether the arc belongs to every acceptance set of the automaton. Fairness is looked at when
/// walking back.
fn accepts(missing: u128) -> bool {
    missing as u64 == 0
}
