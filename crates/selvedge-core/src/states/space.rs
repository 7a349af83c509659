//! The states of a machine as short tuples, and the steps between them.

use super::chain::Chain;
use super::hash;
use super::parts::{Contents, EMPTY, Parts};
use crate::fingerprint::Fingerprint;
use crate::ids::ThreadId;
use crate::interleave::{Performed, alternatives};
use crate::machine::Pending;
use crate::saved::StateMachine;

/// A step from one state to the next: a thread performs its pending operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StateStep {
    /// The thread that takes it.
    pub thread: ThreadId,
    /// The number of the alternative, where the operation has several.
    pub choice: u32,
}

/// How states are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Identity {
    /// By 128-bit fingerprints, the same in every process.
    #[default]
    Fingerprint,
    /// By comparison of everything.
    Exact,
}

/// A machine that stands in one of its states.
///
/// A state is the tuple of the numbers of its parts' contents; equal contents are kept once. Going
/// to another state touches only the parts that differ, taking a step only those that the machine
/// says may have changed.
pub(super) struct Space<'m, M> {
    machine: &'m mut M,
    parts: Parts,
    /// The state that the machine is in.
    here: Vec<Contents>,
    /// The fingerprint of that state.
    fingerprint: u128,
    exact: Option<Exact>,
    /// Whether parts are looked at as well that the machine does not say have changed.
    audit: bool,
    /// Scratch.
    changed: Vec<u32>,
    bytes: Vec<u8>,
}

/// Data for comparing states without loss.
#[derive(Default)]
struct Exact {
    chain: Chain,
    /// The numbers of the tuples that begin with each part of the present state, and of the empty one.
    suffixes: Vec<u32>,
    /// How many of them, from the first on, are out of date.
    stale: usize,
}

impl<'m, M: StateMachine> Space<'m, M> {
    /// Takes the machine to its first state.
    pub(super) fn new(machine: &'m mut M, identity: Identity) -> Space<'m, M> {
        let mut space = Space {
            machine,
            parts: Parts::new(identity == Identity::Exact),
            here: Vec::new(),
            fingerprint: 0,
            exact: (identity == Identity::Exact).then(Exact::default),
            audit: false,
            changed: Vec::new(),
            bytes: Vec::new(),
        };
        space.start();
        space
    }

    /// Back to the first state.
    pub(super) fn start(&mut self) {
        self.machine.reset();
        self.changed.clear();
        self.machine.changed(&mut self.changed);
        self.changed.clear();
        let parts = self.machine.parts().max(self.here.len());
        self.changed.extend(0..parts as u32);
        self.look();
    }

    pub(super) fn machine(&self) -> &M {
        self.machine
    }

    pub(super) fn machine_mut(&mut self) -> &mut M {
        self.machine
    }

    /// The state the machine is in.
    pub(super) fn here(&self) -> &[Contents] {
        &self.here
    }

    /// The identity of the state. Numbers of tuples where comparison is exact.
    pub(super) fn identity(&mut self) -> u128 {
        match self.exact {
            None => self.fingerprint,
            Some(_) => hash::spread(self.number()),
        }
    }

    /// The number of the state's tuple; for exact comparison only.
    pub(super) fn number(&mut self) -> u32 {
        let exact = self.exact.as_mut().expect("states are kept without loss");
        for part in (0..exact.stale).rev() {
            let rest = exact.suffixes[part + 1];
            exact.suffixes[part] = exact.chain.number(self.here[part], rest);
        }
        exact.stale = 0;
        exact.suffixes[0]
    }

    /// The state whose tuple has this number.
    pub(super) fn tuple(&self, number: u32, into: &mut Vec<Contents>) {
        let exact = self.exact.as_ref().expect("states are kept without loss");
        exact.chain.elements(number, into);
    }

    /// Takes the machine to a state that it was in before.
    pub(super) fn restore(&mut self, state: &[Contents]) {
        // A state from a peer may have parts of threads that this process has not met yet.
        if state.len() > self.here.len() {
            self.make_room(state.len());
        }
        for part in 0..self.here.len() {
            let wanted = state.get(part).copied().unwrap_or(EMPTY);
            if wanted != self.here[part] {
                self.machine.restore(part, self.parts.contents(wanted));
                self.put(part, wanted);
            }
        }
    }

    /// Appends the steps that can be taken, by thread and choice.
    pub(super) fn steps(&self, into: &mut Vec<StateStep>) {
        for thread in (0..self.machine.threads() as u32).map(ThreadId) {
            let choices = choices(self.machine, thread);
            into.extend((0..choices).map(|choice| StateStep { thread, choice }));
        }
    }

    /// Takes a step, which must be possible.
    pub(super) fn take(&mut self, step: StateStep) -> Performed {
        let performed = perform(self.machine, step);
        self.changed.clear();
        self.machine.changed(&mut self.changed);
        self.look();
        if self.audit {
            self.compare_all();
        }
        performed
    }

    /// Has every step compare all parts with what the machine says has changed, which costs a lot.
    pub(super) fn audit(&mut self) {
        self.audit = true;
    }

    /// # Panics
    ///
    /// A part of the state changed although the machine did not report it as changed.
    fn compare_all(&mut self) {
        for part in 0..self.here.len() {
            self.bytes.clear();
            self.machine.identify(part, &mut self.bytes);
            let now = match self.bytes.is_empty() {
                true => 0,
                false => hash::fingerprint(part as u32, &self.bytes),
            };
            let known = self.parts.fingerprint(self.here[part]);
            assert_eq!(now, known, "part {part} has changed unnoticed");
        }
    }

    /// Adds the contents of parts that are known to `print`, by number.
    pub(super) fn digest(&self, print: &mut Fingerprint) {
        print.pair(self.contents(), self.here.len());
        for number in 0..self.contents() {
            let contents = self.parts.fingerprint(number as Contents);
            print.pair(contents as usize, (contents >> 64) as usize);
        }
    }

    /// How many contents of parts are known.
    pub(super) fn contents(&self) -> usize {
        self.parts.len()
    }

    /// Appends to `packed` what makes contents of a part, which are not empty, elsewhere; returns
    /// their fingerprint.
    pub(super) fn export(&mut self, part: usize, number: Contents, packed: &mut Vec<u8>) -> u128 {
        let saved = self.parts.contents(number);
        self.machine.pack(part, saved, packed);
        self.parts.fingerprint(number)
    }

    /// The number of contents that were exported elsewhere. States are told apart by fingerprints then.
    pub(super) fn import(&mut self, part: usize, fingerprint: u128, packed: &[u8]) -> Contents {
        if part >= self.here.len() {
            self.make_room(part + 1);
        }
        let machine = &mut *self.machine;
        let save = |into: &mut Vec<u8>| machine.unpack(part, packed, into);
        self.parts.admit(part as u32, fingerprint, &[], save)
    }

    /// How much memory the contents of parts, what the machine keeps of them, and exact tuples take.
    pub(super) fn bytes(&self) -> usize {
        let exact = self.exact.as_ref().map_or(0, |exact| exact.chain.bytes());
        self.parts.bytes() + self.machine.kept() + exact
    }

    /// Reads the parts that may have changed.
    fn look(&mut self) {
        let parts = self.machine.parts();
        if parts > self.here.len() || self.here.is_empty() {
            self.make_room(parts);
        }
        for place in 0..self.changed.len() {
            let part = self.changed[place];
            self.bytes.clear();
            let machine = &mut *self.machine;
            machine.identify(part as usize, &mut self.bytes);
            let save = |into: &mut Vec<u8>| machine.save(part as usize, into);
            let contents = self.parts.intern(part, &self.bytes, save);
            if contents != self.here[part as usize] {
                self.put(part as usize, contents);
            }
        }
    }

    fn make_room(&mut self, parts: usize) {
        self.here.resize(parts, EMPTY);
        if let Some(exact) = &mut self.exact {
            exact.suffixes.resize(parts + 1, 0);
        }
    }

    fn put(&mut self, part: usize, contents: Contents) {
        let old = self.parts.fingerprint(self.here[part]);
        let new = self.parts.fingerprint(contents);
        self.fingerprint = self.fingerprint.wrapping_sub(old).wrapping_add(new);
        self.here[part] = contents;
        if let Some(exact) = &mut self.exact {
            exact.stale = exact.stale.max(part + 1);
        }
    }
}

/// How many ways a thread has to go on: none if it is stopped or has to wait.
pub(super) fn choices<M: StateMachine>(machine: &M, thread: ThreadId) -> u32 {
    match machine.pending(thread) {
        Pending::Op(op) => alternatives(machine, thread, op, |at| machine.value(at)),
        _ => 0,
    }
}

/// Lets a thread of `machine` perform its pending operation on what memory holds now.
pub(super) fn perform<M: StateMachine>(machine: &mut M, step: StateStep) -> Performed {
    let StateStep { thread, choice } = step;
    let Pending::Op(op) = machine.pending(thread) else {
        panic!("{thread} has no step to take");
    };
    let performed = Performed::new(thread, op, choice, |at| machine.value(at));
    machine.resume(thread, performed.outcome(), &[]);
    performed
}
