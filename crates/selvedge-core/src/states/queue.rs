//! The queue of states to expand, with the steps that led to them.

use super::chunks::Chunks;
use super::parts::Contents;
use super::space::StateStep;
use crate::fingerprint::Fingerprint;
use crate::ids::ThreadId;

/// A step in four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackedStep(u32);

/// The most threads, and the most alternatives of a step, that fit.
pub(super) const MOST: u32 = 1 << 16;

impl PackedStep {
    pub(super) fn new(step: StateStep) -> PackedStep {
        debug_assert!(step.thread.0 < MOST && step.choice < MOST);
        PackedStep(step.thread.0 << 16 | step.choice)
    }

    pub(super) fn step(self) -> StateStep {
        StateStep {
            thread: self.thread(),
            choice: self.0 & (MOST - 1),
        }
    }

    pub(super) fn bits(self) -> u32 {
        self.0
    }

    pub(super) fn from_bits(bits: u32) -> PackedStep {
        PackedStep(bits)
    }

    pub(super) fn thread(self) -> ThreadId {
        ThreadId(self.0 >> 16)
    }
}

/// A way to reach a state, numbered in the order in which they are looked at. Where the thread that
/// ran last makes a difference, a state has several.
pub(super) type Node = u32;

/// How each node was reached: the node before and the step from there. The first one was not.
#[derive(Default)]
pub(super) struct Nodes(Chunks<(Node, PackedStep)>);

impl Nodes {
    /// The next node.
    pub(super) fn push(&mut self, parent: Node, step: PackedStep) -> Node {
        self.0.push((parent, step));
        self.0.len() as u32 - 1
    }

    /// The steps from the first node to `node`.
    pub(super) fn path(&self, mut node: Node) -> Vec<StateStep> {
        let mut steps = Vec::new();
        while node != 0 {
            let (parent, step) = self.0[node];
            steps.push(step.step());
            node = parent;
        }
        steps.reverse();
        steps
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

/// An entry of a [`Queue`].
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Its node or, as long as it has none, that of the state before.
    pub(super) node: Node,
    /// The step that led there.
    pub(super) step: PackedStep,
    /// Whether only the thread of that step goes on from here; another peer looks at the others.
    pub(super) only: bool,
    end: usize,
}

/// States with all it takes to go on from them.
#[derive(Default)]
pub(super) struct Queue {
    entries: Vec<Entry>,
    tuples: Vec<Contents>,
}

impl Queue {
    pub(super) fn push(&mut self, state: &[Contents], node: Node, step: PackedStep, only: bool) {
        self.tuples.extend_from_slice(state);
        self.entries.push(Entry {
            node,
            step,
            only,
            end: self.tuples.len(),
        });
    }

    pub(super) fn get(&self, place: usize) -> (Entry, &[Contents]) {
        let begin = match place {
            0 => 0,
            _ => self.entries[place - 1].end,
        };
        let entry = self.entries[place];
        (entry, &self.tuples[begin..entry.end])
    }

    /// Makes the step that led to an entry the thread's only one, or not.
    pub(super) fn set_only(&mut self, place: usize, only: bool) {
        self.entries[place].only = only;
    }

    /// The entries at the places that are wanted.
    pub(super) fn filtered(&self, wanted: impl Fn(usize) -> bool) -> Queue {
        let mut queue = Queue::default();
        for place in (0..self.len()).filter(|&place| wanted(place)) {
            self.copy(place, &mut queue);
        }
        queue
    }

    /// Appends the one at `place` to `other`.
    pub(super) fn copy(&self, place: usize, other: &mut Queue) {
        let (entry, state) = self.get(place);
        other.push(state, entry.node, entry.step, entry.only);
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.tuples.clear();
    }

    /// Adds all that is in it to `print`.
    pub(super) fn digest(&self, print: &mut Fingerprint) {
        for place in 0..self.len() {
            let (entry, state) = self.get(place);
            print.pair(entry.node as usize, entry.step.bits() as usize);
            print.pair(entry.only.into(), state.len());
            for &contents in state {
                print.pair(contents as usize, 0);
            }
        }
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
            + self.tuples.capacity() * size_of::<Contents>()
    }
}

/// States that take one switch more; their nodes are those of the states before.
#[derive(Default)]
pub(super) struct Later {
    pub(super) states: Queue,
    /// The identity of each state.
    pub(super) identities: Vec<u128>,
}

impl Later {
    /// The entries at the places that are wanted.
    pub(super) fn filtered(&self, wanted: impl Fn(usize) -> bool) -> Later {
        let identities = self.identities.iter().enumerate();
        Later {
            states: self.states.filtered(&wanted),
            identities: identities
                .filter(|&(place, _)| wanted(place))
                .map(|(_, &identity)| identity)
                .collect(),
        }
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.states.bytes() + self.identities.capacity() * size_of::<u128>()
    }
}
