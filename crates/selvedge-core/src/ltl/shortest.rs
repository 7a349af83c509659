//! The best lasso into an accepting component: first few context switches, then few steps.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::automaton::Automaton;
use super::components::Components;
use super::formula::Formula;
use super::graph::{Graph, Lasso, Move};
use super::product::{Product, Successor};
use crate::ids::ThreadId;

/// A node, and the thread that moved last.
type Place = (u32, Option<ThreadId>);

const CONNECTED: &str = "the component is strongly connected";

/// A lasso whose prefix has the fewest context switches, and among those the fewest steps; its
/// cycle is put together from shortest ways between the acceptance sets.
pub(super) fn lasso<G: Graph>(
    product: &mut Product<'_, G>,
    found: &Components,
) -> Result<Option<Lasso>, G::Stop> {
    let accepting = |node: u32| found.accepting[found.component[node as usize] as usize];
    if !found.accepting.contains(&true) {
        return Ok(None);
    }
    let mut place = (0, None);
    let mut prefix = Vec::new();
    if !accepting(0) {
        let cycles = |arc: &Successor| accepting(arc.arc.to);
        // The sooner nothing can be mended any more, the better; some execution must go on from
        // there, though.
        let decided = decided(product, place)?;
        let onward = match &decided {
            Some(way) => {
                let there = follow(place, way, &mut Vec::new());
                self::way(product, there, |_| true, cycles)?
            }
            None => None,
        };
        match (decided, onward) {
            (Some(first), _) if accepting(first.last().map_or(0, |arc| arc.arc.to)) => {
                place = follow(place, &first, &mut prefix);
            }
            (Some(first), Some(then)) => {
                place = follow(place, &first, &mut prefix);
                place = follow(place, &then, &mut prefix);
            }
            _ => {
                let way = way(product, place, |_| true, cycles)?;
                let way = way.expect("there is an accepting component");
                place = follow(place, &way, &mut prefix);
            }
        }
    }
    let home = place.0;
    let component = found.component[home as usize];
    let inside = |arc: &Successor| found.component[arc.arc.to as usize] == component;
    let start = place;
    let direct = way(product, start, inside, |arc| arc.arc.to == home)?.expect(CONNECTED);
    let mut missing = left(u128::MAX, &direct);
    let mut cycle = Vec::new();
    if missing == 0 {
        follow(start, &direct, &mut cycle);
        return product.lasso(prefix, cycle).map(Some);
    }
    // The way back home passes through some sets anyway: first to those that it does not.
    let mut passed = u128::MAX;
    loop {
        let goal = |arc: &Successor| match missing {
            0 => arc.arc.to == home,
            _ => missing & !arc.arc.missing != 0,
        };
        let way = way(product, place, inside, goal)?.expect(CONNECTED);
        missing = left(missing, &way);
        passed = left(passed, &way);
        place = follow(place, &way, &mut cycle);
        if missing == 0 && place.0 == home {
            if passed == 0 {
                return product.lasso(prefix, cycle).map(Some);
            }
            missing = passed;
        }
    }
}

/// The cheapest way to where the automaton does not care any more what follows.
fn decided<G: Graph>(
    product: &mut Product<'_, G>,
    from: Place,
) -> Result<Option<Vec<Successor>>, G::Stop> {
    let nodes = product.len() as u32;
    let settled: Vec<bool> = (0..nodes).map(|node| product.is_decided(node)).collect();
    if !settled.contains(&true) {
        return Ok(None);
    }
    way(product, from, |_| true, |arc| settled[arc.arc.to as usize])
}

/// The way to `state` with the fewest context switches, and among those the fewest steps. It must
/// have been met.
pub(super) fn to_state<G: Graph>(graph: &mut G, state: u32) -> Result<Vec<Move>, G::Stop> {
    let mut moves = Vec::new();
    if state != 0 {
        let anything = Automaton::new(&Formula::Constant(true), true).expect("it is small");
        let mut product = Product::new(graph, &anything, &[], false);
        let way = way(&mut product, (0, None), |_| true, |arc| arc.by.to == state)?;
        let way = way.expect("the state has been met");
        follow((0, None), &way, &mut moves);
    }
    Ok(moves)
}

/// The rest of `missing` after a way.
fn left(missing: u128, way: &[Successor]) -> u128 {
    way.iter()
        .fold(missing, |missing, arc| missing & arc.arc.missing)
}

fn follow(mut place: Place, way: &[Successor], into: &mut Vec<Move>) -> Place {
    for arc in way {
        place = (arc.arc.to, arc.by.thread.or(place.1));
        into.push(arc.by);
    }
    place
}

/// The cheapest way from `from` over arcs that are `allowed`; its last arc is the first one that is
/// a `goal`.
fn way<G: Graph>(
    product: &mut Product<'_, G>,
    from: Place,
    allowed: impl Fn(&Successor) -> bool,
    goal: impl Fn(&Successor) -> bool,
) -> Result<Option<Vec<Successor>>, G::Stop> {
    /// How a place was reached, in the cheapest way that is known.
    struct Reached {
        cost: (u32, u32),
        over: Option<(usize, Successor)>,
        settled: bool,
    }
    let mut places = vec![from];
    let mut numbers = HashMap::from([(from, 0)]);
    let mut reached = vec![Reached {
        cost: (0, 0),
        over: None,
        settled: false,
    }];
    let mut queue = BinaryHeap::from([Reverse(((0, 0), 0))]);
    let mut best: Option<((u32, u32), usize, Successor)> = None;
    while let Some(Reverse((cost, number))) = queue.pop() {
        if best.as_ref().is_some_and(|best| best.0 <= cost) {
            break;
        }
        if std::mem::replace(&mut reached[number].settled, true) {
            continue;
        }
        let (node, last) = places[number];
        for arc in product.successors(node)? {
            if !allowed(arc) {
                continue;
            }
            let switch = last.is_some() && arc.by.thread.is_some() && last != arc.by.thread;
            let cost = (cost.0 + u32::from(switch), cost.1 + 1);
            if goal(arc) && best.as_ref().is_none_or(|best| cost < best.0) {
                best = Some((cost, number, *arc));
            }
            let place = (arc.arc.to, arc.by.thread.or(last));
            let fresh = places.len();
            let at = *numbers.entry(place).or_insert(fresh);
            if at == fresh {
                places.push(place);
                reached.push(Reached {
                    cost: (u32::MAX, u32::MAX),
                    over: None,
                    settled: false,
                });
            }
            if cost < reached[at].cost {
                reached[at].cost = cost;
                reached[at].over = Some((number, *arc));
                queue.push(Reverse((cost, at)));
            }
        }
    }
    let Some((_, mut at, last)) = best else {
        return Ok(None);
    };
    let mut way = vec![last];
    while let Some((before, arc)) = reached[at].over {
        way.push(arc);
        at = before;
    }
    way.reverse();
    Ok(Some(way))
}
