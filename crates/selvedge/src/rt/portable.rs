//! Agreement between processes that search one model together: the number of each thread, and facts
//! about the program that hold beyond one execution.

use std::hash::Hasher as _;

use rustc_hash::{FxHashSet, FxHasher};
use selvedge_core::{Fact, Portable, Site, ThreadId, spawned};

use super::accesses::PROTECTED_RUNS;
use super::determinism::First;
use super::machine::RustMachine;
use super::state::State;

/// The sorts of facts, which are the last two bits of a fact.
const COUNTED: Fact = 0;
const WATCHED: Fact = 1;
const SEEN: Fact = 2;
/// Stands for a write to freed memory. No site has this distance.
const EAGER: Fact = Fact::MAX;

/// From here sites are counted: the program may be loaded at another address in another process.
static ANCHOR: u8 = 0;

fn distance(address: u64) -> u64 {
    address.wrapping_sub((&raw const ANCHOR).expose_provenance() as u64)
}

fn address(distance: u64) -> u64 {
    distance.wrapping_add((&raw const ANCHOR).expose_provenance() as u64)
}

/// A fact of this sort about the site at `address`.
fn about(address: u64, sort: Fact) -> Fact {
    distance(address) << 2 | sort
}

/// The site that a fact is about.
fn site(fact: Fact) -> u64 {
    // The distance has a sign.
    address((fact as i64 >> 2) as u64)
}

/// The fact that threads of the model change `word` on their way to `site`.
pub(super) fn seen(site: u64, word: usize) -> Fact {
    let mut hash = FxHasher::default();
    hash.write_u64(distance(site));
    hash.write_u64(distance(word as u64));
    hash.finish() << 2 | SEEN
}

impl State {
    fn spawned(&self) -> Vec<(ThreadId, u32)> {
        spawned::spawned(self.threads.iter().map(|thread| &thread.children[..]))
    }

    /// Gives the first numbers to threads that are created so, and further ones to the others that are
    /// known. False if nothing changes.
    fn renumber(&mut self, spawned: &[(ThreadId, u32)]) -> bool {
        let Some(children) = spawned::renumbered(&self.spawned(), spawned) else {
            return false;
        };
        while self.threads.len() < children.len() && self.add_thread().is_ok() {}
        let known = self.threads.len() as u32;
        for (thread, mut children) in self.threads.iter_mut().zip(children) {
            children.retain(|&child| child < known);
            thread.children = children;
        }
        true
    }

    fn facts(&self) -> FxHashSet<Fact> {
        let counted = self.counted.iter().map(|site| about(site.0, COUNTED));
        let watched = self.watched.iter().map(|&site| about(site, WATCHED));
        let mut facts: FxHashSet<Fact> = counted.chain(watched).collect();
        facts.extend(self.outside.facts());
        facts.extend(self.eager.then_some(EAGER));
        facts
    }
}

impl RustMachine {
    /// This process goes on with a search that another one has begun: that one has seen the executions
    /// in which freed memory is protected.
    pub(crate) fn join_search(&mut self) {
        self.engine.state().borrow_mut().run = PROTECTED_RUNS;
    }

    /// A slice of the search is over. Whether the last execution wrote to freed memory is otherwise found out
    /// when the next one begins.
    pub(crate) fn end_slice(&mut self) {
        let mut state = self.engine.state().borrow_mut();
        if !state.eager && state.memory.overwritten().is_some() {
            (state.eager, state.again) = (true, true);
        }
    }

    /// A fingerprint of the first execution, as far as processes must agree on it.
    pub(crate) fn first_execution(&self) -> u64 {
        self.first.fingerprint()
    }
}

impl Portable for RustMachine {
    fn spawned(&self) -> Vec<(ThreadId, u32)> {
        self.engine.state().borrow().spawned()
    }

    fn number_threads(&mut self, spawned: &[(ThreadId, u32)]) {
        if self.engine.state().borrow_mut().renumber(spawned) {
            // It was noted with other numbers.
            self.first = First::default();
        }
    }

    fn learned(&mut self) -> Vec<(Fact, Fact)> {
        let mut facts: Vec<Fact> = self.engine.state().borrow().facts().into_iter().collect();
        facts.sort_unstable();
        facts.into_iter().map(|fact| (fact, fact)).collect()
    }

    fn learn(&mut self, facts: &[(Fact, Fact)]) {
        let mut state = self.engine.state().borrow_mut();
        for fact in facts.iter().flat_map(|&(first, last)| first..=last) {
            match fact & 3 {
                _ if fact == EAGER => state.eager = true,
                COUNTED => {
                    state.counted.insert(Site(site(fact)));
                }
                WATCHED => {
                    state.watched.insert(site(fact));
                }
                SEEN => state.outside.recall(fact),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_names_its_site() {
        static PLACE: u64 = 0;
        let place = (&raw const PLACE).addr() as u64;
        for sort in [COUNTED, WATCHED] {
            let fact = about(place, sort);
            assert_eq!((site(fact), fact & 3), (place, sort));
        }
        let before = (&raw const ANCHOR).addr() as u64 - 4096;
        assert_eq!(site(about(before, WATCHED)), before);
    }
}
