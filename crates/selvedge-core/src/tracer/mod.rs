//! Optimal search up to reads-from: TRACER (Abdulla, Atig, Jonsson, Ngo, "Optimal Stateless Model
//! Checking under the Release-Acquire Semantics", OOPSLA 2018), algorithms 1 to 3, for
//! release-acquire and for sequential consistency.
//!
//! A class is program order and reads-from; the coherence order is only kept as far as those two
//! force it (see [`SaturatedRa`] and [`SaturatedSc`]). A new read tries every write that is there.
//! A write that comes later is *declared* to the earlier reads which could have read it; each of
//! them gets a *schedule*, the events that the write needs, the write, and the read of it, which is
//! run from where the read was first reached. Schedules are compared as sets of observations, so
//! each class is reached once.
//!
//! Deviations from the document, all tested against brute force:
//! * A write is declared to every earlier read, not to the closest one only, and also while a
//!   schedule runs: otherwise classes are lost already with loads and stores.
//! * The read at the end of a schedule stays open for further writes, because of updates and
//!   under sequential consistency.
//! * Two updates cannot read the same write. An update *competes* for what an earlier update took:
//!   the earlier one gets the schedule in which it comes second.
//! * An update that can wait (a lock, a semaphore, …) is performed only when some write lets it
//!   through and nothing else can go on. Where it takes that write, an execution in which it does
//!   not has exactly one other update that does: the rival runs, and the first one waits for
//!   another turn. Updates that still wait at the end compete as well, in deadlocks too.
//! * Reads of loops that only wait are performed as late: see `waiting.rs`.
//! * Choices, and updates with several possible effects, are part of the observations.
//!
//! No execution is given up once begun, and none comes to nothing: see `outlook.rs`. The search
//! keeps one graph, and for each read in it the schedules that are still to be run.

mod awaits;
mod consistency;
mod ending;
mod events;
mod frame;
mod linearization;
mod ra;
mod reads;
mod replay;
mod sc;
mod schedules;
mod swap;

pub use consistency::Consistency;
pub use ra::SaturatedRa;
pub use sc::SaturatedSc;

use std::ops::ControlFlow;

use crate::bugs::Bugs;
use crate::graph::{Graph, INIT, Slot};
use crate::ids::ThreadId;
use crate::machine::{Machine, Pending};
use crate::op::{Op, Value};
use crate::report::{Counts, Ending, Observer, Report};
use awaits::Awaits;
use frame::{Frame, Latest};
use schedules::Step;

/// Searches every class of executions of `machine` that is consistent with `C`, each once. After a
/// bug it goes on only if `keep_going`.
pub fn search<C: Consistency, M: Machine>(
    machine: &mut M,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    let mut search = Search::<C, M, _> {
        machine,
        observer,
        graph: Graph::default(),
        model: C::default(),
        frames: Vec::new(),
        depth: 0,
        latest: Latest::default(),
        pending: Vec::new(),
        awaits: Awaits::default(),
        performed: None,
        steps: Vec::new(),
        scratch: swap::Scratch::default(),
        counts: Counts::default(),
        bugs: Bugs::new(keep_going),
        unrolled: false,
        undefined: false,
    };
    let ending = search.run();
    Report {
        ending,
        counts: search.counts,
        bugs: search.bugs.into_found(),
        unrolled: search.unrolled,
        states: None,
    }
}

struct Search<'a, C, M, O> {
    machine: &'a mut M,
    observer: &'a mut O,
    graph: Graph,
    model: C,
    /// Those beyond `depth` are kept for their memory.
    frames: Vec<Frame>,
    depth: usize,
    latest: Latest,
    /// What the machine said each thread is about to do.
    pending: Vec<Pending>,
    awaits: Awaits,
    /// How many events of the graph the machine has performed. `None` if it performed something
    /// else.
    performed: Option<usize>,
    /// The schedule that is being run.
    steps: Vec<Step>,
    scratch: swap::Scratch,
    counts: Counts,
    bugs: Bugs,
    unrolled: bool,
    /// Something happened after which nothing has a meaning.
    undefined: bool,
}

/// How often the search starts over at most.
const RUNS: u32 = 10_000;

type Flow<T = ()> = ControlFlow<Ending, T>;

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// A loop that was not known to wait, or an iteration that turns out to touch what others can
    /// reach, makes the search start over.
    fn run(&mut self) -> Ending {
        for _ in 0..RUNS {
            let ending = match self.explore() {
                ControlFlow::Continue(()) => Ending::Complete,
                ControlFlow::Break(ending) => ending,
            };
            let learned = self.awaits.learned();
            let misjudged = self.machine.misjudged();
            if !learned && (ending != Ending::Complete || !misjudged) {
                return ending;
            }
            self.undo(0);
            self.depth = 0;
            self.latest.clear();
            self.awaits.frames.clear();
            self.undefined = false;
            self.counts = Counts::default();
            self.observer.restart();
        }
        let reason = "whether a loop only waits was judged anew each time";
        Ending::Nondeterministic(reason.to_owned())
    }

    fn explore(&mut self) -> Flow {
        self.replay()?;
        loop {
            self.grow()?;
            if !self.undefined {
                self.finish()?;
            }
            if self.observer.progress(&self.counts).is_break() {
                return ControlFlow::Break(Ending::Stopped);
            }
            if !self.backtrack()? {
                return ControlFlow::Continue(());
            }
        }
    }

    /// Adds events in step with the machine until no thread can go on.
    fn grow(&mut self) -> Flow {
        while !self.undefined {
            if let Some((thread, op)) = self.next() {
                let slot = self.add(thread, op);
                self.enter(slot.expect("the newest write can be read"))?;
            } else if !self.add_waiting()? {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    fn add(&mut self, thread: ThreadId, op: Op) -> Option<Slot> {
        match op {
            Op::Load { .. } | Op::Update { .. } | Op::Choose { .. } => {
                self.open(thread, op);
                self.advance()
            }
            Op::Store { .. } | Op::Fence { .. } | Op::Create { .. } => {
                self.push(thread, op, INIT, 0, 0)
            }
            Op::Join { .. } | Op::JoinAll => self.push(thread, op, INIT, 0, 0),
        }
    }

    /// Adds an operation that some write lets through. They come last: everything that can let them
    /// through is there. False if there is none.
    fn add_waiting(&mut self) -> Flow<bool> {
        for thread in (0..self.pending.len() as u32).map(ThreadId) {
            let Pending::Op(op) = self.pending[thread.index()] else {
                continue;
            };
            if self.awaits.at_await(thread) {
                if self.open_await(thread, op)? {
                    return ControlFlow::Continue(true);
                }
            } else if let Op::Update { at, .. } = op {
                self.open(thread, op);
                self.frames[self.depth - 1].blocking = self.has_one_source(at);
                if let Some(slot) = self.advance() {
                    self.enter(slot)?;
                    return ControlFlow::Continue(true);
                }
                self.close();
            }
        }
        ControlFlow::Continue(false)
    }

    /// The next operation that cannot be made to wait: preferably one that reads nothing,
    /// preferably of the thread that ran last.
    fn next(&self) -> Option<(ThreadId, Op)> {
        let last = self.graph.events().last().map(|event| event.id.thread);
        let all = (0..self.pending.len() as u32).map(ThreadId);
        let mut reading = None;
        for thread in last.into_iter().chain(all) {
            let Pending::Op(op) = self.pending[thread.index()] else {
                continue;
            };
            match op {
                Op::Store { .. } | Op::Fence { .. } | Op::Create { .. } => {
                    return Some((thread, op));
                }
                Op::Join { child } if self.ended(child) => return Some((thread, op)),
                Op::JoinAll if self.others_ended(thread) => return Some((thread, op)),
                Op::Join { .. } | Op::JoinAll => {}
                Op::Update { function, .. } if function.can_block() => {}
                Op::Load { .. } | Op::Update { .. } if self.awaits.at_await(thread) => {}
                Op::Load { .. } | Op::Update { .. } | Op::Choose { .. } => {
                    reading = reading.or(Some((thread, op)));
                }
            }
        }
        reading
    }

    fn ended(&self, thread: ThreadId) -> bool {
        let pending = self.pending.get(thread.index());
        pending.is_none_or(|pending| pending.has_ended())
    }

    fn others_ended(&self, thread: ThreadId) -> bool {
        let mut all = (0..self.pending.len() as u32).map(ThreadId);
        all.all(|other| other == thread || self.ended(other))
    }

    /// Goes on with the operation just added in `slot`: tells earlier reads and the machine.
    fn enter(&mut self, slot: Slot) -> Flow {
        self.declare(slot);
        if let Some(frame) = self.frames[..self.depth].last_mut()
            && frame.events == slot as usize
        {
            frame.slot = slot;
        }
        self.resume(slot)
    }
}

/// What a read of `source` returns.
fn value_of(graph: &Graph, source: Slot, initial: Value) -> Value {
    match source {
        INIT => initial,
        source => graph.event(source).wrote,
    }
}
