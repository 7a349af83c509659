//! Skipping attempts that failed and left nothing behind.
//!
//! A lock-free operation reads, prepares a change, and tries to make it by a compare-exchange. If that
//! fails, it tries again with what the compare-exchange found, or reads again. Nothing that follows
//! depends on the attempt that failed: everything also happens in the execution in which the first
//! read returned the newer value at once. So a thread that has tried again, and is where that other
//! value would have led it, is stopped as if an assumption did not hold.
//!
//! A *simulation* decides this: the thread is put back to its first read, runs to its next visible operation with the
//! newer value, and is brought back. Registers, stack, thread-local variables and all memory that either run wrote must
//! be the same. No loop has to be recognised, and it does not matter how the compiler arranged it.
//!
//! Two conditions make sure that the other execution allows as much as this one:
//! * between the two reads, the thread performed no visible write, allocated or freed nothing, and called
//!   no function with effects of its own;
//! * the first read synchronises no more than the later one does, so every race and every stale read
//!   that follows the failed attempt also follows without it.
//!
//! The failed attempt itself stays in the execution, with the races that it takes part in: only what
//! would come after it is left out.
//!
//! Compare Kokologiannakis, Ren and Vafeiadis, "Dynamic Partial Order Reductions for Spinloops"
//! (FMCAD 2021), who transform such loops at compile time.

use selvedge_core::op::Rmw;
use selvedge_core::{Function, Location, MemoryOrder, Op, Outcome, Pending, Stop, Value};

use crate::abi;
use crate::current;
use crate::gate::gate;
use crate::posix::state;
use crate::runtime::Runtime;

/// How many reads are remembered.
const REMEMBERED: usize = 8;

/// A read that a later one may repeat.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    /// The thread's events before it.
    event: u32,
    /// The step that performed it.
    step: usize,
    at: Location,
    order: MemoryOrder,
    /// The expected value, if it is a compare-exchange that failed.
    expected: Option<Value>,
    /// The number of the thread's lasting effects by then.
    effects: u64,
}

/// The reads of a thread that it may be repeating.
#[derive(Debug, Default)]
pub(crate) struct Retry {
    anchors: Vec<Anchor>,
    /// The compare-exchange that failed last: the thread's events before it, and where it failed.
    failed: Option<(u32, Location)>,
    /// The anchors that the last event may repeat.
    candidates: Vec<Anchor>,
    /// The value that it read.
    value: Value,
    /// The state in which the thread came to its next visible operation.
    state: Option<(u64, u64)>,
    /// The state that the outcome of a simulation is compared with.
    goal: Goal,
}

/// A thread at a visible operation or at its end.
#[derive(Debug, Default, PartialEq)]
struct Goal {
    pending: Option<Pending>,
    result: usize,
    state: Option<(u64, u64)>,
    heap: (usize, usize),
    /// Thread-local variables, and what is known of the thread.
    locals: Vec<u8>,
    known: Option<Box<state::Local>>,
}

impl Retry {
    /// The thread begins.
    pub(crate) fn begin(&mut self) {
        self.anchors.clear();
        self.candidates.clear();
        self.failed = None;
    }

    /// Whether the state of the thread at its next visible operation matters.
    #[inline(always)]
    pub(crate) fn is_watched(&self) -> bool {
        !self.candidates.is_empty()
    }

    /// The thread comes to its next visible operation.
    pub(crate) fn arrive(&mut self, state: Option<(u64, u64)>) {
        self.state = state;
    }

    /// Notes that `anchor` reads `value`.
    fn read(&mut self, anchor: Anchor, value: Value) {
        self.candidates.clear();
        self.state = None;
        self.value = value;
        // Anchors of later events belong to steps that were taken back.
        self.anchors.retain(|known| known.event < anchor.event);
        self.failed = self.failed.filter(|&(event, _)| event < anchor.event);
        if anchor.expected.is_some() {
            self.failed = Some((anchor.event, anchor.at));
        }
        let failed = self.failed;
        let repeated = |known: &&Anchor| {
            known.at == anchor.at
                && known.effects == anchor.effects
                && failed.is_some_and(|(event, at)| event > known.event && at == anchor.at)
                && known.expected != Some(value)
                && synchronises_no_more(known.order, anchor.order)
        };
        self.candidates.extend(self.anchors.iter().filter(repeated));
        if self.anchors.len() == REMEMBERED {
            self.anchors.remove(0);
        }
        self.anchors.push(anchor);
    }
}

/// Whether a read with order `one` synchronises no more than a read with order `other`.
fn synchronises_no_more(one: MemoryOrder, other: MemoryOrder) -> bool {
    let strength = |order| match order {
        MemoryOrder::Plain => 0,
        MemoryOrder::Relaxed | MemoryOrder::Release => 1,
        MemoryOrder::Acquire | MemoryOrder::AcqRel => 2,
        MemoryOrder::SeqCst => 3,
    };
    strength(one) <= strength(other)
}

impl Runtime {
    /// `thread` is about to perform its pending operation with `outcome`. To be asked before its clock
    /// changes.
    #[inline]
    pub(crate) fn note_attempt(&mut self, index: usize, outcome: Outcome) {
        let Some(step) = self.undo.running_step() else {
            return;
        };
        let thread = &mut self.threads[index];
        let (at, order, expected) = match thread.pending {
            Pending::Op(Op::Load { at, order }) => (at, order, None),
            Pending::Op(Op::Update {
                at,
                function:
                    Function::Memory {
                        rmw: Rmw::CompareExchange { expected, .. },
                        ..
                    },
                failure,
                ..
            }) if outcome.wrote.is_none() => (at, failure, Some(expected)),
            _ => {
                thread.retry.candidates.clear();
                return;
            }
        };
        if self.settings.skip_retries && self.parking {
            let anchor = Anchor {
                event: thread.clock[index],
                step,
                at,
                order,
                expected,
                effects: thread.spin.effects(),
            };
            thread.retry.read(anchor, outcome.read);
        }
    }

    /// Whether the thread is now where an earlier read may repeat its last one: then it is put back to
    /// that, about to go on with the newer value.
    #[inline]
    pub(crate) fn begin_simulation(&mut self, index: usize) -> bool {
        self.threads[index].retry.is_watched() && self.simulate_next(index)
    }

    #[cold]
    fn simulate_next(&mut self, index: usize) -> bool {
        while let Some(anchor) = self.threads[index].retry.candidates.pop() {
            let thread = &self.threads[index];
            let comparable = match thread.pending {
                Pending::Op(_) => thread.retry.state.is_some(),
                Pending::Stopped(stop) => stop == Stop::Finished,
                Pending::Absent => false,
            };
            if !comparable || thread.is_busy() {
                self.threads[index].retry.candidates.clear();
                return false;
            }
            let goal = self.goal(index);
            let clock = thread.clock.clone();
            if !self.return_to_step(index, anchor.step, anchor.event) {
                continue;
            }
            let thread = &mut self.threads[index];
            thread.clock = clock;
            thread.retry.goal = goal;
            thread.retry.state = None;
            thread.outcome = Outcome {
                read: thread.retry.value,
                wrote: None,
            };
            // So that `arrive` notes the state, whether or not more candidates follow.
            thread.retry.candidates.push(anchor);
            self.simulating = true;
            // SAFETY: the gate is mapped while a program is loaded.
            unsafe { (*gate()).attention = 1 };
            return true;
        }
        false
    }

    /// The thread has come to its next stop: it is brought back. If it is where it is anyway, it is
    /// stopped there.
    pub(crate) fn end_simulation(&mut self, index: usize) {
        self.simulating = false;
        // SAFETY: the gate is mapped while a program is loaded.
        unsafe { (*gate()).attention = 0 };
        let thread = &mut self.threads[index];
        thread.retry.candidates.pop();
        let goal = std::mem::take(&mut thread.retry.goal);
        let same = self.goal(index) == goal;
        let same = self.end_return() && same;
        let thread = &mut self.threads[index];
        thread.retry.state = goal.state;
        if same {
            thread.retry.candidates.clear();
            thread.pending = Pending::Stopped(Stop::Assumed);
        }
    }

    /// The state that a simulation has to lead to.
    fn goal(&self, index: usize) -> Goal {
        let thread = &self.threads[index];
        Goal {
            pending: Some(thread.pending),
            result: thread.result.addr(),
            state: thread.retry.state,
            heap: thread.heap.extent(),
            locals: thread.slot.local_bytes().to_vec(),
            known: state::save_thread(index),
        }
    }
}

/// A thread that is simulated calls a function of the runtime. Functions that cannot be undone end
/// the simulation.
pub(crate) fn enter() {
    // SAFETY: the gate is mapped while a program is loaded.
    let entered = unsafe { (*gate()).entering };
    if !abi::is_undoable(entered) {
        current::leave_simulation();
    }
    // SAFETY: as above.
    unsafe { (*gate()).attention = 1 };
}
