//! Decides between the claims of peers to a state, independently of the order in which they arrive.
//!
//! Of the claims that are made in a round to a state, with as many switches, the least (node
//! before, step) wins, as if one peer had made all of them in that order. Where the thread that ran
//! last makes a difference, the least of each further thread wins too, with that thread only.

use rustc_hash::FxHashMap;

use super::queue::{Node, PackedStep};
use super::visited::{Number, Verdict, Visited};

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Won {
    /// Nothing.
    No,
    /// The state is to be looked at.
    All,
    /// The state is to be looked at, but only the steps of the thread that ran last.
    Thread,
}

impl Won {
    pub(super) fn byte(self) -> u8 {
        self as u8
    }

    pub(super) fn from_byte(byte: u8) -> Won {
        match byte {
            1 => Won::All,
            2 => Won::Thread,
            _ => Won::No,
        }
    }
}

/// A claim, and whose it is.
#[derive(Clone, Copy)]
struct Claim {
    parent: Node,
    step: PackedStep,
    peer: u32,
    place: u32,
}

impl Claim {
    fn thread(self) -> u32 {
        self.step.thread().0
    }

    fn is_before(self, other: Claim) -> bool {
        (self.parent, self.step) < (other.parent, other.step)
    }
}

/// The claims of one round to the states that a peer owns.
pub(super) struct Contest {
    /// The first claims so far: to the states that are new in this round, by number, and to others.
    new: Vec<Claim>,
    first_new: Number,
    first: FxHashMap<Number, Claim>,
    /// The first claims so far with a further thread.
    further: FxHashMap<(Number, u32), Claim>,
    /// The results of each peer's claims so far, and whether they take a switch.
    results: Vec<Vec<(Won, bool)>>,
    /// Whether claims may come before earlier ones.
    mixed: bool,
}

impl Contest {
    /// Among this many peers; the states that were met are known already.
    pub(super) fn new(peers: usize, visited: &Visited) -> Contest {
        Contest {
            new: Vec::new(),
            first_new: visited.len() as Number,
            first: FxHashMap::default(),
            further: FxHashMap::default(),
            results: vec![Vec::new(); peers],
            mixed: false,
        }
    }

    /// All claims so far came in order; those that follow need not.
    pub(super) fn mix(&mut self) {
        self.mixed = true;
    }

    /// The results of a peer's claims.
    pub(super) fn results(&self, peer: usize) -> impl Iterator<Item = Won> {
        self.results[peer].iter().map(|&(won, _)| won)
    }

    /// How many states each peer has won without a switch.
    pub(super) fn won(&self) -> impl Iterator<Item = usize> {
        let won = |results: &Vec<(Won, bool)>| {
            let won = results.iter();
            won.filter(|&&(won, switches)| won != Won::No && !switches)
                .count()
        };
        self.results.iter().map(won)
    }

    /// A new round.
    pub(super) fn clear(&mut self, visited: &Visited) {
        self.new.clear();
        self.first_new = visited.len() as Number;
        self.first.clear();
        self.further.clear();
        self.results.iter_mut().for_each(Vec::clear);
        self.mixed = false;
    }

    /// A peer claims that `step` leads from node `parent` to a state, with `layer` switches, the
    /// last of which is new if `switches` is set. Returns what that comes to so far, and keeps
    /// account of it if it is something or `keep` is set.
    pub(super) fn claim(
        &mut self,
        visited: &mut Visited,
        identity: u128,
        (parent, step): (Node, PackedStep),
        (layer, switches): (u32, bool),
        (peer, keep): (usize, bool),
    ) -> Won {
        let claim = Claim {
            parent,
            step,
            peer: peer as u32,
            place: self.results[peer].len() as u32,
        };
        let (number, verdict) = visited.claim(identity, layer, step.thread());
        let won = match verdict {
            Verdict::New => {
                self.new.push(claim);
                Won::All
            }
            Verdict::Sooner => {
                self.first.insert(number, claim);
                Won::All
            }
            Verdict::Again => match self.first_of(number) {
                Some(first) if claim.is_before(first) => {
                    self.take_over(visited, (number, layer), claim, first)
                }
                _ => {
                    self.further.insert((number, claim.thread()), claim);
                    Won::Thread
                }
            },
            Verdict::Same if self.mixed => self.compare(visited, (number, layer), claim),
            Verdict::Same | Verdict::Known => Won::No,
        };
        if keep || won != Won::No {
            self.results[peer].push((won, switches));
        }
        won
    }

    /// The state was reached with as many switches before, by the same thread if that makes a
    /// difference.
    fn compare(&mut self, visited: &mut Visited, state: (Number, u32), claim: Claim) -> Won {
        let first = self.first_of(state.0);
        let key = (state.0, claim.thread());
        let rival = self.further.get(&key).copied();
        match (first, rival) {
            (Some(first), None) if claim.is_before(first) => {
                self.lose(first);
                self.put_first(state.0, claim);
                Won::All
            }
            (Some(first), Some(rival)) if claim.is_before(first) => {
                self.lose(rival);
                self.further.remove(&key);
                self.take_over(visited, state, claim, first)
            }
            (_, Some(rival)) if claim.is_before(rival) => {
                self.lose(rival);
                self.further.insert(key, claim);
                Won::Thread
            }
            _ => Won::No,
        }
    }

    /// The first claim of this round to a state with the fewest switches.
    fn first_of(&self, state: Number) -> Option<Claim> {
        let sooner = self.first.get(&state).copied();
        sooner.or_else(|| {
            let place = state.checked_sub(self.first_new)?;
            Some(self.new[place as usize])
        })
    }

    fn put_first(&mut self, state: Number, claim: Claim) {
        match self.first.get_mut(&state) {
            Some(first) => *first = claim,
            None => self.new[(state - self.first_new) as usize] = claim,
        }
    }

    /// A claim by another thread turns out to be before the first one, which becomes one of a
    /// further thread.
    fn take_over(
        &mut self,
        visited: &mut Visited,
        (state, layer): (Number, u32),
        claim: Claim,
        first: Claim,
    ) -> Won {
        visited.put_first(state, layer, claim.thread(), first.thread());
        self.results[first.peer as usize][first.place as usize].0 = Won::Thread;
        self.further.insert((state, first.thread()), first);
        self.put_first(state, claim);
        Won::All
    }

    fn lose(&mut self, claim: Claim) {
        self.results[claim.peer as usize][claim.place as usize].0 = Won::No;
    }
}
