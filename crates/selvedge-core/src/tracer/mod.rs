//! Optimal search up to reads-from: TRACER (Abdulla, Atig, Jonsson, Ngo, "Optimal Stateless Model
//! Checking under the Release-Acquire Semantics", OOPSLA 2018), for release-acquire and for
//! sequential consistency.
//!
//! Two executions are in the same class if they have the same program order and reads-from. Of the
//! coherence order, only the part that these two relations force is kept ([`SaturatedRa`],
//! [`SaturatedSc`]). Each class is visited once.
//!
//! * Algorithm 1, DfVisit: `Search::visit` adds events to the graph, writes before reads. A read
//!   opens a frame (`reads.rs`), which gives it every write of the graph and then runs its
//!   schedules. The recursion of the paper is the stack of frames.
//! * Algorithm 2, DeclarePostponed: `swap.rs` gives earlier reads schedules in which they read a new
//!   write.
//! * Algorithm 3, RunSchedule: `run_schedule` in `reads.rs`.
//!
//! Deviations from the paper, all compared with brute force:
//! * A write is declared when it is added, not after the visit, and to every earlier read that it
//!   does not depend on, not only to the closest one. Schedules declare their writes as well.
//!   Otherwise classes are lost already for programs with loads and stores.
//! * The read at the end of a schedule stays swappable. Updates and sequential consistency need it.
//! * Two updates cannot read the same write. A new update *competes* for the write that an earlier
//!   update took: the earlier one gets a schedule in which it comes second.
//! * A blocking update (of a lock, a semaphore, …) is performed only when some write lets it through
//!   and nothing else can run. Where it can take one write only, each execution in which it does not
//!   take that write has exactly one other update that does. The schedule then ends with that other
//!   update, and the first one is blocked again. Updates that are still blocked at the end of an
//!   execution compete as well.
//! * Loops that only wait are blocking operations: see `awaits/`.
//! * Choices, and the effects of updates that have several, are part of the observations.
//!
//! Executions can be blocked by a skipped await; see `awaits/`.

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
use crate::machine::{Pending, SpinLoops};
use crate::model::MemoryModel;
use crate::op::{Op, Value};
use crate::report::{Counts, Ending, Observer, RESTARTS, Report};
use crate::rewind::Rewind;
use awaits::Awaits;
use frame::{Frame, Latest};
use schedules::Step;

/// Visits every class of executions of `machine` that is consistent under `C`, each once. Stops at
/// the first bug unless `keep_going`.
pub fn search<C: Consistency, M: SpinLoops>(
    machine: &mut M,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    let mut search = Search::<C, M, _> {
        machine: Rewind::new(machine),
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

/// [`search`] with the traces that are consistent under `model`, which is release-acquire or sequential
/// consistency.
pub fn search_under<M: SpinLoops>(
    model: MemoryModel,
    machine: &mut M,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    match model {
        MemoryModel::Ra => search::<SaturatedRa, M>(machine, keep_going, observer),
        _ => search::<SaturatedSc, M>(machine, keep_going, observer),
    }
}

struct Search<'a, C, M, O> {
    machine: Rewind<'a, M>,
    observer: &'a mut O,
    graph: Graph,
    model: C,
    /// The stack of frames. Those from `depth` on are kept for their memory.
    frames: Vec<Frame>,
    depth: usize,
    latest: Latest,
    /// The state of each thread, as the machine reported it.
    pending: Vec<Pending>,
    awaits: Awaits,
    /// The number of events of the graph that the machine has performed. `None` if it has performed
    /// others.
    performed: Option<usize>,
    /// The schedule that is being run.
    steps: Vec<Step>,
    scratch: swap::Scratch,
    counts: Counts,
    bugs: Bugs,
    unrolled: bool,
    /// The execution has undefined behaviour and is not continued.
    undefined: bool,
}

type Flow<T = ()> = ControlFlow<Ending, T>;

impl<C: Consistency, M: SpinLoops, O: Observer<M>> Search<'_, C, M, O> {
    /// Explores, and starts over when an await loop was discovered, or when the machine had wrongly
    /// judged that an iteration accesses nothing that other threads can reach.
    fn run(&mut self) -> Ending {
        for _ in 0..RESTARTS {
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
        Ending::never_settled()
    }

    fn explore(&mut self) -> Flow {
        self.replay()?;
        loop {
            self.visit()?;
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

    /// Algorithm 1, DfVisit: adds events in step with the machine until no thread can run.
    fn visit(&mut self) -> Flow {
        while !self.undefined {
            if let Some((thread, op)) = self.next() {
                let slot = self.add(thread, op);
                let slot = slot.expect("the newest write can be read");
                self.enter(slot)?;
            } else if !self.add_blocking()? {
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
            _ => self.push(thread, op, INIT, 0, 0),
        }
    }

    /// Adds a blocking operation that some write lets through. False if there is none.
    fn add_blocking(&mut self) -> Flow<bool> {
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

    /// The next operation that does not block: if possible one that does not read (line 1), if
    /// possible of the thread that ran last.
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

    /// Declares the operation just added in `slot` to earlier reads, and lets the machine perform it.
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

/// The value that a read of `source` returns.
fn value_of(graph: &Graph, source: Slot, initial: Value) -> Value {
    match source {
        INIT => initial,
        source => graph.event(source).wrote,
    }
}
