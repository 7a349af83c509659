//! The smallest set of changes after which none of the known executions fails.

use super::change::{Change, Way};
use super::example::Example;
use crate::ids::Site;
use crate::machine::SpinLoops;
use crate::model::Model;

/// Where there are more sets of one size, they are not tried one by one.
const SETS: usize = 4000;

/// A place, and all that can be done about it in one way, weakest first.
pub(super) type Candidate = Vec<Change>;

/// The possible changes: every access and fence of the examples that `own` accepts.
pub(super) fn candidates(examples: &[Example], own: &dyn Fn(Site) -> bool) -> Vec<Candidate> {
    let mut places: Vec<(Site, crate::op::Op)> = Vec::new();
    for &(site, op) in examples.iter().flat_map(|example| &example.sites) {
        if own(site) && places.iter().all(|&(known, _)| known != site) {
            places.push((site, op));
        }
    }
    let changes = |ways: fn(crate::op::Op) -> Vec<Way>| {
        let places = places.iter();
        places.map(move |&(site, op)| {
            let ways = ways(op).into_iter();
            ways.map(|way| Change { site, op, way }).collect()
        })
    };
    let all: Vec<Candidate> = changes(Way::orders).chain(changes(Way::fences)).collect();
    all.into_iter().filter(|ways| !ways.is_empty()).collect()
}

/// Fewer new fences first, then weaker orders.
fn cost(changes: &[Change]) -> (usize, u32) {
    let fences = changes
        .iter()
        .filter(|change| matches!(change.way, Way::Fence(_)));
    let strength = changes.iter().map(|change| change.way.strength()).sum();
    (fences.count(), strength)
}

/// Tries sets of changes on executions that are known to fail.
pub(super) struct Trials<'a, M> {
    pub(super) machine: &'a mut M,
    pub(super) examples: &'a [Example],
    /// False once there has been enough of it.
    pub(super) go_on: &'a mut dyn FnMut() -> bool,
    /// No smaller set of changes will do: more examples never need fewer changes.
    pub(super) at_least: usize,
}

impl<M: SpinLoops> Trials<'_, M> {
    /// The smallest set of changes found that forbids every example. Stronger orders never allow more,
    /// so whether a set of places will do is decided with the strongest.
    pub(super) fn smallest<C: Model>(&mut self, candidates: &[Candidate]) -> Option<Vec<Change>> {
        let strongest: Vec<Change> = candidates.iter().map(|c| c[c.len() - 1]).collect();
        if !self.forbids::<C>(&strongest)? {
            return None;
        }
        for size in self.at_least..=candidates.len() {
            if combinations(candidates.len(), size) > SETS {
                break;
            }
            self.at_least = size;
            let mut best: Option<Vec<Change>> = None;
            let mut chosen: Vec<usize> = (0..size).collect();
            loop {
                let set: Vec<Change> = chosen.iter().map(|&n| strongest[n]).collect();
                if self.forbids::<C>(&set)? {
                    let places: Vec<&Candidate> = chosen.iter().map(|&n| &candidates[n]).collect();
                    self.weaken::<C>(&places, &mut best)?;
                }
                if !next_combination(&mut chosen, candidates.len()) {
                    break;
                }
            }
            if best.is_some() {
                return best;
            }
        }
        self.thin_out::<C>(candidates)
    }

    /// Puts the cheapest sufficient orders for `places` into `best`, if they are cheaper.
    fn weaken<C: Model>(
        &mut self,
        places: &[&Candidate],
        best: &mut Option<Vec<Change>>,
    ) -> Option<()> {
        let mut sets: Vec<Vec<Change>> = vec![Vec::new()];
        for ways in places {
            let longer = |set: &Vec<Change>| {
                let set = set.clone();
                ways.iter().map(move |&way| [&set[..], &[way]].concat())
            };
            sets = sets.iter().flat_map(longer).collect();
        }
        sets.sort_by_key(|set| cost(set));
        for set in sets {
            if best.as_ref().is_some_and(|best| cost(best) <= cost(&set)) {
                break;
            }
            if self.forbids::<C>(&set)? {
                *best = Some(set);
                break;
            }
        }
        Some(())
    }

    /// From everything that can be raised, takes away what is not needed.
    fn thin_out<C: Model>(&mut self, candidates: &[Candidate]) -> Option<Vec<Change>> {
        let order = |c: &&Candidate| matches!(c[0].way, Way::Order(_));
        let orders: Vec<&Candidate> = candidates.iter().filter(order).collect();
        let mut set: Vec<Change> = orders.iter().map(|c| c[c.len() - 1]).collect();
        if !self.forbids::<C>(&set)? {
            return None;
        }
        let mut ways: Vec<&Candidate> = orders;
        for n in (0..set.len()).rev() {
            let left = set.remove(n);
            let candidate = ways.remove(n);
            if !self.forbids::<C>(&set)? {
                set.insert(n, left);
                ways.insert(n, candidate);
            }
        }
        for n in 0..set.len() {
            for &weaker in ways[n] {
                let kept = std::mem::replace(&mut set[n], weaker);
                if self.forbids::<C>(&set)? {
                    break;
                }
                set[n] = kept;
            }
        }
        Some(set)
    }

    /// Whether no example fails with `changes`. `None` if there has been enough of it.
    fn forbids<C: Model>(&mut self, changes: &[Change]) -> Option<bool> {
        // The newest one is the likeliest to be left.
        for example in self.examples.iter().rev() {
            if !(self.go_on)() {
                return None;
            }
            if example.fails::<C, _>(self.machine, changes) {
                return Some(false);
            }
        }
        Some(true)
    }
}

/// How many sets of `size` out of `of` there are.
fn combinations(of: usize, size: usize) -> usize {
    (0..size).fold(1, |sets: usize, n| sets.saturating_mul(of - n) / (n + 1))
}

/// The next set of as many numbers below `of`, in lexicographic order.
fn next_combination(chosen: &mut [usize], of: usize) -> bool {
    let size = chosen.len();
    let Some(at) = (0..size).rev().find(|&n| chosen[n] < of - (size - n)) else {
        return false;
    };
    chosen[at] += 1;
    for n in at + 1..size {
        chosen[n] = chosen[n - 1] + 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{combinations, next_combination};

    #[test]
    fn every_set_of_two_out_of_four_comes_up_once() {
        let mut chosen = vec![0, 1];
        let mut seen = vec![chosen.clone()];
        while next_combination(&mut chosen, 4) {
            seen.push(chosen.clone());
        }
        assert_eq!(seen, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(combinations(4, 2), seen.len());
    }
}
