//! Machines whose states can be saved and restored.

use crate::ids::{Location, ThreadId};
use crate::machine::Machine;
use crate::op::Value;

/// A machine whose whole state consists of parts that can be read and put back.
///
/// Part 0 is what all threads share. A machine gives the other numbers to whatever changes by itself,
/// such as a thread's stack or its heap, so that a step changes few parts and equal parts are kept
/// once. The number of a part never changes its meaning; what does not exist in a state is an empty
/// part there, and so is every part beyond [`parts`](StateMachine::parts).
///
/// Such a machine works on its present state: no operation depends on what happened before except
/// through the state. [`resume`](Machine::resume) is given an empty clock, nothing is checked for
/// races, and no thread is ever [`Stop::Spinning`](crate::Stop::Spinning). The value of a plain
/// store is not known before it is made: the one in a pending [`Op::Store`](crate::Op::Store) with
/// [`MemoryOrder::Plain`](crate::MemoryOrder::Plain) means nothing; ask
/// [`value`](StateMachine::value) after the step.
pub trait StateMachine: Machine {
    /// How many parts a state has at most, as far as the search has come.
    fn parts(&self) -> usize;

    /// Appends to `into` what tells the present contents of a part from others. Situations that no
    /// continuation can tell apart, such as those that differ in dead stack or in freed memory, are
    /// given the same bytes as far as the machine knows, and so are equal contents in another
    /// process that runs the same program.
    fn identify(&mut self, part: usize, into: &mut Vec<u8>);

    /// Appends to `into` what [`restore`](StateMachine::restore) needs. Needed once per identity:
    /// contents with the same identity can take each other's place.
    fn save(&mut self, part: usize, into: &mut Vec<u8>);

    /// Makes a part what an earlier [`save`](StateMachine::save) of the same part in the same
    /// process left. The machine is in a state that exists only when all parts have been made those
    /// of one state.
    fn restore(&mut self, part: usize, from: &[u8]);

    /// How much memory it takes to restore what was saved, besides what
    /// [`save`](StateMachine::save) appended.
    fn kept(&self) -> usize {
        0
    }

    /// Whether the next step is known to end this process. It is to be shown how that comes about then.
    fn doomed(&self) -> bool {
        false
    }

    /// Appends to `into` what makes, by [`unpack`](StateMachine::unpack) in another process that
    /// runs the same program, the contents that `saved`, of an earlier [`save`](StateMachine::save)
    /// of the part, stands for.
    fn pack(&mut self, part: usize, saved: &[u8], into: &mut Vec<u8>) {
        let _ = part;
        into.extend_from_slice(saved);
    }

    /// Appends to `into` what [`restore`](StateMachine::restore) needs for contents that were
    /// [packed](StateMachine::pack) in another process.
    fn unpack(&mut self, part: usize, packed: &[u8], into: &mut Vec<u8>) {
        let _ = part;
        into.extend_from_slice(packed);
    }

    /// The creator of the thread with this number, and how many threads that creates before. Asked for
    /// the newest number.
    fn origin(&self, thread: ThreadId) -> (ThreadId, u32) {
        let _ = thread;
        unreachable!("the numbers of all threads are known from the start")
    }

    /// Gives the next number to the thread that `parent` creates after `place` others; numbers are
    /// agreed upon where several processes search together.
    fn introduce(&mut self, parent: ThreadId, place: u32) {
        let _ = (parent, place);
        unreachable!("the numbers of all threads are known from the start")
    }

    /// Takes the newest number back, which was given by the step that was just taken. A state is
    /// restored next.
    fn forget_newest(&mut self) {
        unreachable!("the numbers of all threads are known from the start")
    }

    /// Appends to `into`, ascending, the parts that may have changed since this was last asked,
    /// except by [`restore`](StateMachine::restore).
    fn changed(&mut self, into: &mut Vec<u32>);

    /// The value of `location` now.
    fn value(&self, location: Location) -> Value;

    /// The memory that the pending operation of `thread` is about to access, if it is an access to
    /// memory.
    fn access(&self, thread: ThreadId) -> Option<PendingAccess>;

    /// Whether main ends the process, for all threads, when it returns.
    fn ends_with_main(&self) -> bool {
        false
    }

    /// Whether the pending operation of `thread` is a progress mark.
    fn marks_progress(&self, thread: ThreadId) -> bool {
        let _ = thread;
        false
    }

    /// The propositions that formulas can speak of, as formulas write them (see
    /// [`Atom`](crate::ltl::Atom)).
    fn propositions(&self) -> Vec<String>;

    /// Whether a proposition holds now.
    fn holds(&mut self, proposition: usize) -> bool;
}

/// Memory that is about to be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingAccess {
    /// The first byte.
    pub address: u64,
    /// How many bytes.
    pub size: u64,
    /// Whether they are written.
    pub writes: bool,
    /// Whether the access is atomic: two atomic accesses never race.
    pub atomic: bool,
    /// Whether the memory is freed. What comes after that is an access to freed memory, which is told instead of
    /// the race.
    pub frees: bool,
}

impl PendingAccess {
    /// Whether the two, made by different threads in either order, are a data race.
    pub fn races_with(self, other: PendingAccess) -> bool {
        let apart =
            self.address + self.size <= other.address || other.address + other.size <= self.address;
        let frees = self.frees || other.frees;
        !apart && !frees && (self.writes || other.writes) && !(self.atomic && other.atomic)
    }
}
