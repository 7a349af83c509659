//! Numbered states that a search can return to.

use super::hash;
use super::index::Index;
use super::parts::Contents;
use super::space::{Identity, Space, StateStep};
use crate::interleave::Performed;
use crate::saved::StateMachine;

/// A state of a [`States`], numbered in the order in which they were met. The first one is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateId(pub u32);

impl StateId {
    /// The state that the program starts in.
    pub const FIRST: StateId = StateId(0);

    /// The number as an index into tables.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a step led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The state.
    pub state: StateId,
    /// Whether it was met for the first time.
    pub new: bool,
    /// The effect of the step.
    pub performed: Performed,
}

/// The states of a machine as far as they have been met, without loss.
///
/// The machine always stands in one of them, [`here`](States::here): at first in
/// [`StateId::FIRST`], after [`go`](States::go) in the one asked for, after [`take`](States::take)
/// in the successor. Whatever the machine can tell of a state ([`StateMachine::holds`],
/// [`Machine::pending`](crate::Machine::pending)) is asked while it stands there.
///
/// Each state takes about 40 bytes, and what is in its parts once for all states that share it.
pub struct States<'m, M> {
    space: Space<'m, M>,
    index: Index,
    /// The number of each state's tuple.
    tuples: Vec<u32>,
    here: StateId,
    scratch: Vec<Contents>,
}

impl<'m, M: StateMachine> States<'m, M> {
    /// Resets the machine; its first state is known.
    pub fn new(machine: &'m mut M) -> States<'m, M> {
        let mut states = States {
            space: Space::new(machine, Identity::Exact),
            index: Index::default(),
            tuples: Vec::new(),
            here: StateId::FIRST,
            scratch: Vec::new(),
        };
        states.arrive();
        states
    }

    /// How many states are known.
    #[expect(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// The state that the machine stands in.
    pub fn here(&self) -> StateId {
        self.here
    }

    /// The machine, in the state it stands in.
    pub fn machine(&self) -> &M {
        self.space.machine()
    }

    /// The same for questions that need more than a look, such as [`StateMachine::holds`]. It must
    /// stay in its state.
    pub fn machine_mut(&mut self) -> &mut M {
        self.space.machine_mut()
    }

    /// Takes the machine to a known state.
    pub fn go(&mut self, state: StateId) {
        if state != self.here {
            let mut tuple = std::mem::take(&mut self.scratch);
            self.space.tuple(self.tuples[state.index()], &mut tuple);
            self.space.restore(&tuple);
            self.scratch = tuple;
            self.here = state;
        }
    }

    /// Appends the steps that can be taken here, by thread and choice.
    pub fn steps(&self, into: &mut Vec<StateStep>) {
        self.space.steps(into);
    }

    /// Takes a step, one of [`steps`](States::steps).
    pub fn take(&mut self, step: StateStep) -> Reached {
        let performed = self.space.take(step);
        let new = self.arrive();
        Reached {
            state: self.here,
            new,
            performed,
        }
    }

    /// How much memory the states take.
    pub fn bytes(&self) -> usize {
        let tuples = self.tuples.capacity() * size_of::<u32>();
        self.space.bytes() + self.index.bytes() + tuples
    }

    /// Finds out which state the machine stands in, and whether it is new.
    fn arrive(&mut self) -> bool {
        let number = self.space.number();
        let (tuples, new) = (&self.tuples, self.tuples.len() as u32);
        let hash = (hash::spread(number) >> 96) as u32;
        let found = self
            .index
            .find_or_insert(hash, new, |state| tuples[state as usize] == number);
        self.here = StateId(found.unwrap_or(new));
        if found.is_none() {
            self.tuples.push(number);
        }
        found.is_none()
    }
}
