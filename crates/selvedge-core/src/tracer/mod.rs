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

mod consistency;
mod ending;
mod events;
mod frame;
mod line;
mod loops;
mod outlook;
mod ra;
mod replay;
mod routine;
mod sc;
mod spinning;
mod swap;
mod waiting;

pub use consistency::Consistency;
pub use ra::SaturatedRa;
pub use sc::SaturatedSc;

use std::ops::ControlFlow;

use crate::bugs::Bugs;
use crate::graph::{Graph, INIT, Kind, Slot};
use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Pending};
use crate::op::{Effect, Op, Value};
use crate::report::{Counts, Ending, Observer, Report};
use frame::{Frame, Latest, NO_ATTEMPT, NOWHERE, Paths, Rivals, Schedules, Step, alternatives};

/// How much effort to make for programs with loops that only wait. Beyond the last two, executions
/// may come to nothing; none is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How often to start over. Each time there is a loop of some thread less that nothing is known
    /// of.
    pub runs: u32,
    /// How much of what others could do to remember for each turn that a thread may leave to them,
    /// in operations.
    pub remembered: usize,
    /// In how many ways they may be imagined to help together before it is taken for granted that
    /// they do.
    pub imagined: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            runs: 10_000,
            remembered: 1_000_000,
            imagined: 1_000,
        }
    }
}

/// Searches every class of executions of `machine` that is consistent with `C`, each once. After a
/// bug it goes on only if `keep_going`.
pub fn search<C: Consistency, M: Machine>(
    machine: &mut M,
    keep_going: bool,
    observer: &mut impl Observer<M>,
) -> Report {
    search_within::<C, M>(machine, keep_going, Limits::default(), observer)
}

/// The same with other limits than the usual ones.
pub fn search_within<C: Consistency, M: Machine>(
    machine: &mut M,
    keep_going: bool,
    limits: Limits,
    observer: &mut impl Observer<M>,
) -> Report {
    let mut search = Search::<C, M, _> {
        machine,
        observer,
        limits,
        graph: Graph::default(),
        model: C::default(),
        frames: Vec::new(),
        depth: 0,
        latest: Latest::default(),
        pending: Vec::new(),
        loops: loops::Loops::default(),
        watching: Vec::new(),
        leaving: Vec::new(),
        put_off: Vec::new(),
        stands: None,
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
    limits: Limits,
    graph: Graph,
    model: C,
    /// Those beyond `depth` are kept for their memory.
    frames: Vec<Frame>,
    depth: usize,
    latest: Latest,
    /// What the machine said each thread is about to do.
    pending: Vec<Pending>,
    /// What is known of loops that only wait.
    loops: loops::Loops,
    /// The frames with which attempts of several reads begin, or may do so.
    watching: Vec<u32>,
    /// The frames in which threads left their turn to others.
    leaving: Vec<u32>,
    /// The threads with a read that would contradict that, whatever of what is there it reads.
    put_off: Vec<ThreadId>,
    /// How many events of the graph the machine has performed. `None` if it performed something
    /// else.
    stands: Option<usize>,
    /// The schedule that is being run.
    steps: Vec<Step>,
    scratch: swap::Scratch,
    counts: Counts,
    bugs: Bugs,
    unrolled: bool,
    /// Something happened after which nothing has a meaning.
    undefined: bool,
}

type Flow<T = ()> = ControlFlow<Ending, T>;

impl<C: Consistency, M: Machine, O: Observer<M>> Search<'_, C, M, O> {
    /// A loop that was not known to wait, or an iteration that turns out to touch what others can
    /// reach, makes the search start over.
    fn run(&mut self) -> Ending {
        for _ in 0..self.limits.runs {
            let ending = match self.explore() {
                ControlFlow::Continue(()) => Ending::Complete,
                ControlFlow::Break(ending) => ending,
            };
            let learned = self.loops.learned();
            let misjudged = self.machine.misjudged();
            if !learned && (ending != Ending::Complete || !misjudged) {
                return ending;
            }
            self.undo(0);
            self.depth = 0;
            self.latest.clear();
            self.watching.clear();
            self.leaving.clear();
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
                let Some(slot) = self.add(thread, op) else {
                    self.close();
                    self.put_off.push(thread);
                    continue;
                };
                self.enter(slot)?;
            } else if !self.add_waiting()? {
                break;
            }
            self.put_off.clear();
        }
        self.put_off.clear();
        ControlFlow::Continue(())
    }

    fn add(&mut self, thread: ThreadId, op: Op) -> Option<Slot> {
        match op {
            Op::Load { .. } | Op::Update { .. } | Op::Choose { .. } => {
                self.open(thread, op);
                self.offer_help();
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
            if self.loops.repeats(thread) {
                if self.open_loop(thread, op)? {
                    return ControlFlow::Continue(true);
                }
            } else if let Op::Update { at, .. } = op {
                self.open(thread, op);
                self.frames[self.depth - 1].waits = self.has_one_source(at);
                self.offer_help();
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
                Op::Load { .. } | Op::Update { .. } if self.loops.repeats(thread) => {}
                Op::Load { .. } | Op::Update { .. } if self.put_off.contains(&thread) => {}
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

    /// Begins a frame for the pending operation of `thread`.
    fn open(&mut self, thread: ThreadId, op: Op) {
        let initial = op.location().map_or(0, |at| self.machine.initial(at));
        let mut schedules = Schedules::default();
        let mut sources = Vec::new();
        let mut paths = Paths::default();
        let mut watched = Vec::new();
        let mut written = Vec::new();
        let mut rivals = Rivals::default();
        if let Some(old) = self.frames.get_mut(self.depth) {
            schedules = std::mem::take(&mut old.schedules);
            schedules.clear();
            sources = std::mem::take(&mut old.sources);
            paths = std::mem::take(&mut old.paths);
            paths.clear();
            watched = std::mem::take(&mut old.watched);
            watched.clear();
            written = std::mem::take(&mut old.written);
            written.clear();
            rivals = std::mem::take(&mut old.rivals);
            rivals.clear();
        }
        match op.location() {
            Some(at) => self.model.sources(&self.graph, thread, at, &mut sources),
            None => {
                sources.clear();
                sources.push(INIT);
            }
        }
        let number = self.depth as u32;
        let previous = op.location().map_or(NOWHERE, |at| {
            let previous = self.latest.of(at);
            self.latest.set(at, number);
            previous
        });
        let frame = Frame {
            events: self.graph.len(),
            thread,
            index: self.graph.next_id(thread).index,
            op,
            initial,
            previous,
            slot: NOWHERE,
            waits: false,
            turn: None,
            attempt: NO_ATTEMPT,
            paths,
            watched,
            written,
            rivals,
            sources,
            next_choice: 0,
            schedules,
        };
        if self.depth == self.frames.len() {
            self.frames.push(frame);
        } else {
            self.frames[self.depth] = frame;
        }
        self.depth += 1;
    }

    /// Forgets the last frame.
    fn close(&mut self) {
        self.depth -= 1;
        let frame = &self.frames[self.depth];
        if let Some(at) = frame.location() {
            self.latest.set(at, frame.previous);
        }
        let number = self.depth as u32;
        self.watching.pop_if(|first| *first == number);
        self.leaving.pop_if(|left| *left == number);
    }

    /// Whether there is exactly one write that lets a waiting operation through, and it would take
    /// that write. Leaves only writes that it could read to be tried.
    fn has_one_source(&mut self, at: Location) -> bool {
        let frame = &mut self.frames[self.depth - 1];
        let Op::Update { function, .. } = frame.op else {
            return false;
        };
        let graph = &self.graph;
        let mut keeps = false;
        frame.sources.retain(|&source| {
            let value = value_of(graph, source, frame.initial);
            match function.apply(value) {
                Effect::Block => false,
                Effect::Keep => {
                    keeps = true;
                    true
                }
                Effect::Write(_) | Effect::Choose(_) => {
                    let mut readers = graph.readers(at, source);
                    !readers.any(|reader| graph.event(reader).kind == Kind::ReadHalf)
                }
            }
        });
        frame.sources.len() == 1 && !keeps
    }

    /// Gives the operation of the last frame the next write, or the next choice, that is
    /// consistent. The graph must be as it was when the frame was opened.
    fn advance(&mut self) -> Option<Slot> {
        loop {
            let frame = &mut self.frames[self.depth - 1];
            let source = *frame.sources.last()?;
            let choice = frame.next_choice;
            let value = value_of(&self.graph, source, frame.initial);
            if choice >= alternatives(&frame.op, value) {
                frame.sources.pop();
                frame.next_choice = 0;
                continue;
            }
            frame.next_choice += 1;
            let (thread, op, initial, events) =
                (frame.thread, frame.op, frame.initial, frame.events);
            // What is part of an attempt is judged when that is complete.
            let alone = frame.turn.is_none();
            match self.push(thread, op, source, choice, initial) {
                Some(slot) if !alone || self.may_keep_word() => return Some(slot),
                _ => self.undo(events),
            }
        }
    }

    /// Goes on with the operation just added in `slot`: tells earlier reads and the machine.
    fn enter(&mut self, slot: Slot) -> Flow {
        self.announce(slot);
        if let Some(frame) = self.frames[..self.depth].last_mut()
            && frame.events == slot as usize
        {
            frame.slot = slot;
        }
        self.resume(slot)
    }

    /// Goes back to the latest point from which there is something new. False if there is none.
    fn backtrack(&mut self) -> Flow<bool> {
        self.undefined = false;
        while self.depth > 0 {
            let frame = &mut self.frames[self.depth - 1];
            let events = frame.events;
            frame.slot = NOWHERE;
            self.undo(events);
            if self.frames[self.depth - 1].turn.is_some() {
                if self.backtrack_loop()? {
                    return ControlFlow::Continue(true);
                }
                self.close();
                continue;
            }
            if let Some(slot) = self.advance() {
                self.announce(slot);
                self.frames[self.depth - 1].slot = slot;
                self.catch_up()?;
                return ControlFlow::Continue(true);
            }
            self.undo(events);
            let mut steps = std::mem::take(&mut self.steps);
            let found = self.frames[self.depth - 1].schedules.pop(&mut steps);
            self.steps = steps;
            if !found {
                self.close();
            } else if self.run_schedule()? {
                return ControlFlow::Continue(true);
            }
        }
        ControlFlow::Continue(false)
    }

    /// Performs `steps`. False if they turn out to be inconsistent, or to leave a thread in its
    /// loop.
    fn run_schedule(&mut self) -> Flow<bool> {
        self.catch_up()?;
        for index in 0..self.steps.len() {
            if self.undefined {
                break;
            }
            let Step {
                thread,
                source,
                choice,
            } = self.steps[index];
            self.pass_fences(thread)?;
            let Pending::Op(op) = self.pending[thread.index()] else {
                let reason = format!("{thread} ended before it did what it did before");
                return ControlFlow::Break(Ending::Nondeterministic(reason));
            };
            let source = match source {
                None => INIT,
                Some(id) => self.graph.thread(id.thread)[id.index as usize],
            };
            let initial = op.location().map_or(0, |at| self.machine.initial(at));
            let Some(slot) = self.push(thread, op, source, choice, initial) else {
                return ControlFlow::Continue(false);
            };
            if index + 1 == self.steps.len() {
                let frame = &mut self.frames[self.depth - 1];
                if !frame.waits {
                    frame.slot = slot;
                }
            }
            self.resume(slot)?;
            // A rival that only goes round in its loop takes nothing from anybody. Whether it does
            // may show only after a fence.
            self.pass_fences(thread)?;
            if self.loops.gave_up(thread) {
                return ControlFlow::Continue(false);
            }
            self.announce(slot);
        }
        ControlFlow::Continue(self.undefined || self.may_keep_word())
    }
}

/// What a read of `source` returns.
fn value_of(graph: &Graph, source: Slot, initial: Value) -> Value {
    match source {
        INIT => initial,
        source => graph.event(source).wrote,
    }
}
