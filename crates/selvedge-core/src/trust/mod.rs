//! Optimal search over execution graphs: TruSt (Kokologiannakis et al., POPL 2022), in the form of
//! Algorithm 1 of Marmanis et al., "Reconciling Preemption Bounding with DPOR", without its bound.
//!
//! A new read tries every write that it may read; a new write tries every place in the coherence
//! order and then every earlier read outside of its causal prefix that it may *revisit*. A revisit
//! deletes what was added after the read, except the prefix of the write, and happens only
//! if all of that was added maximally: so each graph is reached in exactly one way.
//!
//! Deviations from the document, all tested against brute force:
//! * An update is two events, and its write half is the very next event added, whatever
//!   the scheduler would prefer; otherwise executions are lost.
//! * An update whose guard fails is a parked read of the newest write. An older write would do as
//!   well for the graph, but such a read could never be revisited nor deleted.
//! * A lock that an unlock wakes is judged as if it were parked, see `maximal.rs`, and graphs in
//!   which some thread waits for good are dropped.
//! * An event that took one of several alternatives counts as maximal only with the first one.
//!
//! The search keeps one graph for each nested revisit and, for each event added to it, the
//! alternatives that are still untried: memory is polynomial in the length of an execution.

mod bound;
mod branch;
mod budget;
mod cursor;
mod descend;
mod endings;
mod forecast;
mod frontier;
mod in_place;
mod level;
mod maximal;
mod replay;
mod schedule;
mod segments;
mod unit;
mod writes;

pub use budget::Budget;
pub use descend::{Descent, descend};
pub use forecast::{Descents, Estimate, Forecast};
pub use frontier::{Found, Frontier, Known, UnitId};
pub use unit::Unit;

pub use crate::report::{Bug, Counts, Ending, NoObserver, Observer, Report, Waiting};
pub use crate::settings::Settings;

use std::ops::ControlFlow;

use crate::bugs::Bugs;
use crate::failure::Failure;
use crate::graph::{Graph, Kind, Slot};
use crate::ids::{Location, Site, ThreadId};
use crate::machine::{Outcome, Pending, Portable, SpinLoops};
use crate::model::Model;
use crate::op::{Op, Value};
use crate::report::RESTARTS;
use crate::rewind::{Rewind, outcome};
use crate::spins::Spins;
use bound::GraphSchedule;
use branch::{Branch, ReadBranch};
use cursor::{Advanced, Cursor};
use level::Level;
use writes::{WriteBranch, WritePlace};

/// After this many graphs that were given up the observer is asked whether to go on.
const GIVEN_UP: u64 = 256;

/// Checks every execution of `machine` that is consistent with the model `C`.
pub fn search<C: Model, M: SpinLoops>(
    machine: &mut M,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> Report {
    let mut search = Search::<C, M, _>::new(machine, settings, observer);
    let ending = search.run_until_enough_is_known();
    search.into_report(ending)
}

/// The result of a slice of a search.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The findings and counts of this slice. It ends with [`Ending::Complete`] if no work is left.
    pub report: Report,
    /// The work that is left if the observer stopped the slice.
    pub rest: Option<Unit>,
    /// A machine told something that turned out to be wrong: the whole search has to start over.
    pub misjudged: bool,
}

/// Explores `unit`, or everything if there is none, until the observer ends that. The observer is asked
/// between two executions, so the executions of the slice and of the rest are those of the unit.
///
/// Bugs that are `known` are not found again.
pub fn slice<C: Model, M: Portable>(
    machine: &mut M,
    settings: Settings,
    (unit, known): (Option<Unit>, Vec<Failure>),
    observer: &mut impl Observer<M>,
) -> Answer {
    let mut search = Search::<C, M, _>::new(machine, settings, observer);
    search.bugs.know(known);
    let ending = match unit {
        Some(unit) => match unit.load(&mut search.cursor, search.machine.lend()) {
            Ok(()) => search.go_on(),
            Err(why) => Ending::Nondeterministic(why.into()),
        },
        None => search.run(),
    };
    let misjudged = search.machine.misjudged();
    let rest = match ending {
        Ending::Stopped => Unit::of(&search.cursor, search.machine.spawned()),
        _ => None,
    };
    Answer {
        report: search.into_report(ending),
        rest,
        misjudged,
    }
}

struct Search<'a, C, M, O> {
    machine: Rewind<'a, M>,
    observer: &'a mut O,
    settings: Settings,
    cursor: Cursor<C>,
    hints: Hints,
    counts: Counts,
    bugs: Bugs,
    /// Of the present execution, not reported yet.
    failures: Vec<(Failure, Vec<Waiting>)>,
    unrolled: bool,
    /// No complete execution lies ahead: a thread spins on values that can no longer change, or
    /// something happened after which nothing has a meaning.
    hopeless: bool,
    /// How many graphs were given up before they were complete.
    given_up: u64,
    /// The observer ended the search between two such graphs.
    stopped: bool,
    /// Of a random descent: how many alternatives begin where.
    alternatives: Vec<(Site, f64)>,
}

/// Knowledge that makes the search faster. It may be dropped between any two executions: what is explored does not
/// depend on it.
#[derive(Default)]
struct Hints {
    scratch: bound::Scratch,
    /// Kept if preemptions are bounded.
    schedule: GraphSchedule,
    spins: Spins,
    /// Threads whose next iteration is deferred as long as there is nothing newer to read at these locations.
    deferred: Vec<(ThreadId, Location, Slot)>,
}

/// Why growing a graph came to an end.
enum Grown {
    /// No thread can take a step.
    Ended,
    /// The graph cannot be completed consistently.
    Dropped,
}

impl<'a, C: Model, M: SpinLoops, O: Observer<M>> Search<'a, C, M, O> {
    fn new(machine: &'a mut M, settings: Settings, observer: &'a mut O) -> Self {
        Search {
            machine: Rewind::new(machine),
            observer,
            settings,
            cursor: Cursor::new(settings.preemptions.is_some()),
            hints: Hints::default(),
            counts: Counts::default(),
            bugs: Bugs::within(settings.preemptions, settings.keep_going),
            failures: Vec::new(),
            unrolled: false,
            hopeless: false,
            given_up: 0,
            stopped: false,
            alternatives: Vec::new(),
        }
    }

    fn into_report(self, ending: Ending) -> Report {
        Report {
            ending,
            counts: self.counts,
            bugs: self.bugs.into_found(),
            unrolled: self.unrolled,
            states: None,
        }
    }

    /// Searches, and starts over where a graph was given up because of an iteration that turned out to access what
    /// other threads can reach.
    fn run_until_enough_is_known(&mut self) -> Ending {
        for _ in 0..RESTARTS {
            let ending = self.run();
            let complete = ending == Ending::Complete;
            let misjudged = self.machine.misjudged();
            if !complete || !misjudged {
                return ending;
            }
            self.counts = Counts::default();
            self.cursor.restart();
            self.observer.restart();
        }
        Ending::never_settled()
    }

    fn run(&mut self) -> Ending {
        match self.begin() {
            ControlFlow::Continue(()) => self.go_on(),
            ControlFlow::Break(ending) => ending,
        }
    }

    /// Explores the first execution.
    fn begin(&mut self) -> ControlFlow<Ending> {
        self.machine.reset();
        self.failures.clear();
        self.hints.deferred.clear();
        self.hints.schedule.begin();
        self.check(ThreadId::MAIN)?;
        self.complete()
    }

    /// Explores all alternatives that are left.
    fn go_on(&mut self) -> Ending {
        while self.backtrack() {
            if let ControlFlow::Break(ending) = self.explore() {
                return ending;
            }
        }
        match self.stopped {
            true => Ending::Stopped,
            false => Ending::Complete,
        }
    }

    /// Brings the machine to the present graph and explores that to its end.
    fn explore(&mut self) -> ControlFlow<Ending> {
        self.replay_as_scheduled()?;
        self.complete()
    }

    /// Explores the present graph to its end.
    fn complete(&mut self) -> ControlFlow<Ending> {
        match self.grow()? {
            Grown::Ended => self.finish(),
            Grown::Dropped => {
                self.given_up();
                ControlFlow::Continue(())
            }
        }
    }

    /// A graph was given up. The observer is asked now and then whether to go on, since there may be many such graphs
    /// between two executions.
    fn given_up(&mut self) {
        self.given_up += 1;
        if self.given_up.is_multiple_of(GIVEN_UP) {
            self.stopped |= self.observer.progress(&self.counts).is_break();
        }
    }

    fn level(&mut self) -> &mut Level<C> {
        self.cursor.level_mut()
    }

    fn graph(&self) -> &Graph {
        self.cursor.graph()
    }

    /// Adds events in step with the machine until the execution ends.
    fn grow(&mut self) -> ControlFlow<Ending, Grown> {
        loop {
            if self.hopeless {
                return ControlFlow::Continue(Grown::Dropped);
            }
            if let Some(thread) = self.cursor.half.take() {
                let branch = self.cursor.half_branch(thread);
                if !self.add_write(branch)? {
                    return ControlFlow::Continue(Grown::Dropped);
                }
                continue;
            }
            let Some((thread, op)) = self.next() else {
                return ControlFlow::Continue(Grown::Ended);
            };
            if !self.may_extend(thread) {
                return ControlFlow::Continue(Grown::Dropped);
            }
            match op {
                Op::Load { at, .. } | Op::Update { at, .. } => self.add_read(thread, op, at)?,
                Op::Store { at, value, .. } => {
                    let event = self.cursor.write_event(thread, op, Kind::Write, value);
                    let branch = WriteBranch::new(self.level(), event, at, WritePlace::Anywhere);
                    if !self.add_write(branch)? {
                        return ControlFlow::Continue(Grown::Dropped);
                    }
                }
                Op::Choose { alternatives } => {
                    if alternatives > 1 {
                        let branch = Branch::Choose {
                            thread,
                            op,
                            next: 1,
                            alternatives,
                        };
                        self.remember(thread, branch, true);
                    }
                    self.add_silent(thread, op, 0)?;
                }
                Op::Fence { .. } | Op::Create { .. } | Op::Join { .. } | Op::JoinAll => {
                    self.add_silent(thread, op, 0)?;
                }
            }
        }
    }

    fn add_silent(&mut self, thread: ThreadId, op: Op, choice: u32) -> ControlFlow<Ending> {
        let threads = self.machine.threads();
        self.level().graph.reserve_threads(threads);
        self.cursor.push_silent(thread, op, choice);
        let outcome = Outcome {
            read: Value::from(choice),
            wrote: None,
        };
        self.resume(thread, outcome)
    }

    fn add_read(&mut self, thread: ThreadId, op: Op, at: Location) -> ControlFlow<Ending> {
        let initial = self.machine.initial(at);
        let level = self.level();
        let mut branch = ReadBranch::new(level, thread, op, at, initial);
        if branch.has_more() {
            self.try_spinning(&mut branch)?;
        }
        let level = self.level();
        let events = level.graph.len();
        let read = branch
            .advance(&level.graph)
            .expect("the newest write can always be read");
        let event = read.push(level, thread, op, at);
        let performs = !matches!(event.kind, Kind::Parked | Kind::ReadHalf);
        if performs {
            self.perform(thread, outcome(&event));
            if self.defer(thread)? {
                return ControlFlow::Continue(());
            }
        }
        if branch.has_more() {
            self.remember_before(events, thread, Branch::Read(branch), true);
        }
        if event.kind == Kind::ReadHalf {
            self.cursor.half = Some(thread);
        }
        match performs {
            true => self.check(thread),
            false => ControlFlow::Continue(()),
        }
    }

    /// Takes the first alternative of a write and remembers the others. The first may already be a
    /// revisit, which the machine has to be replayed for. False if there is none at all.
    fn add_write(&mut self, mut branch: WriteBranch) -> ControlFlow<Ending, bool> {
        let thread = branch.event.id.thread;
        let Some(position) = branch.next_place(self.graph()) else {
            self.remember(thread, Branch::Write(branch), false);
            if self.cursor.sampler.is_some() {
                return ControlFlow::Continue(false);
            }
            let before = (self.cursor.depth, self.graph().len());
            let found = self.backtrack_to_child();
            if found && !self.wake(before)? {
                self.replay_as_scheduled()?;
            }
            return ControlFlow::Continue(found);
        };
        let (event, at) = (branch.event, branch.location);
        if branch.has_more() {
            self.remember(thread, Branch::Write(branch), true);
        }
        let level = self.level();
        level.push_write(event, at, position);
        let outcome = match event.kind {
            Kind::WriteHalf => Outcome {
                read: event.read,
                wrote: Some(event.wrote),
            },
            _ => Outcome::default(),
        };
        self.resume(thread, outcome)?;
        ControlFlow::Continue(true)
    }

    /// Lets the machine perform what the last event of `thread` stands for.
    fn resume(&mut self, thread: ThreadId, outcome: Outcome) -> ControlFlow<Ending> {
        let pending = self.machine.pending(thread);
        self.perform(thread, outcome);
        self.check(thread)?;
        // A new thread may come to its end before its first visible operation.
        match pending {
            Pending::Op(Op::Create { child }) => self.check(child),
            _ => ControlFlow::Continue(()),
        }
    }

    /// The same without a look at where that led.
    fn perform(&mut self, thread: ThreadId, outcome: Outcome) {
        let level = self.cursor.level();
        let last = level.graph.last(thread).expect("an event was just added");
        if level.bounded {
            self.hints.schedule.go_on(level, last);
        }
        let clock = level.model.happens_before(&level.graph, last);
        self.machine.resume(thread, outcome, clock);
    }

    /// Goes back to the latest untried alternative and applies it to the graph. False if there is
    /// none left. The machine has to be replayed afterwards.
    fn backtrack(&mut self) -> bool {
        loop {
            if !self.stopped && self.backtrack_to_child() {
                let (graph, changed) = (self.cursor.graph(), self.cursor.changed);
                self.observer.alternative(graph, changed);
                return true;
            }
            if self.stopped || !self.cursor.leave_level() {
                return false;
            }
        }
    }

    /// The same within the present level and those opened by its alternatives.
    fn backtrack_to_child(&mut self) -> bool {
        self.hopeless = false;
        while !self.stopped {
            match self.cursor.advance() {
                Advanced::Graph if self.within_bound() => return true,
                Advanced::Graph | Advanced::NoPlace => self.given_up(),
                Advanced::Futile => {
                    self.may_lead_within();
                }
                Advanced::Exhausted => return false,
            }
        }
        false
    }
}
