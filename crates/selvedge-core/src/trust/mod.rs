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

pub(crate) mod again;
mod bound;
mod branch;
mod endings;
mod frontier;
mod level;
pub(crate) mod maximal;
mod replay;
mod schedule;
mod unit;
mod writes;

pub use frontier::{Found, Frontier, Known, UnitId};
pub use unit::Unit;

pub use crate::report::{Bug, Counts, Ending, Observer, Report, Silent, Waiting};

use std::ops::ControlFlow;

use crate::bugs::Bugs;
use crate::failure::Failure;
use crate::graph::{Event, Graph, Kind};
use crate::ids::{Location, ThreadId};
use crate::machine::{Machine, Outcome, Pending, Portable};
use crate::model::Model;
use crate::op::{Op, Value};
use crate::rewind::Rewind;
use again::Spins;
use bound::GraphSchedule;
use branch::{Branch, ReadBranch};
use level::{Choice, Level};
use writes::{Place, WriteBranch};

/// After so many graphs that were given up the observer is asked whether to go on.
const GIVEN_UP: u64 = 256;

/// What a search is to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whether to go on after a bug, for all of them.
    pub keep_going: bool,
    /// Only executions with at most so many preemptions are wanted.
    pub preemptions: Option<u32>,
}

/// Checks every execution of `machine` that is consistent with the model `C`.
pub fn search<C: Model, M: Machine>(
    machine: &mut M,
    settings: Settings,
    observer: &mut impl Observer<M>,
) -> Report {
    let mut search = Search::<C, M, _>::new(machine, settings, observer);
    let ending = search.run_until_enough_is_known();
    search.into_report(ending)
}

/// What a slice of a search found out.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was found and counted in this slice. It ends with [`Ending::Complete`] if no work is left.
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
        Some(unit) => match unit.load(&mut search.levels, search.machine.lend()) {
            Ok(depth) => {
                search.depth = depth;
                search.go_on()
            }
            Err(why) => Ending::Nondeterministic(why.into()),
        },
        None => search.run(),
    };
    let misjudged = search.machine.misjudged();
    let rest = match ending {
        Ending::Stopped => {
            let levels = &search.levels[..=search.depth];
            Unit::of(levels, search.machine.spawned())
        }
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
    /// One for each nested revisit; those beyond `depth` are kept for their memory.
    levels: Vec<Level<C>>,
    depth: usize,
    /// The thread whose last event is a read half without its write half.
    half: Option<ThreadId>,
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
    scratch: bound::Scratch,
    /// Kept if preemptions are bounded.
    schedule: GraphSchedule,
    spins: Spins,
    /// The part of the search tree that the present graph is taken to be; see [`Choice::share`].
    share: f64,
}

/// Why growing a graph came to an end.
enum Grown {
    /// No thread can take a step.
    Ended,
    /// The graph cannot be completed consistently.
    Dropped,
}

impl<'a, C: Model, M: Machine, O: Observer<M>> Search<'a, C, M, O> {
    fn new(machine: &'a mut M, settings: Settings, observer: &'a mut O) -> Self {
        let first = Level {
            bounded: settings.preemptions.is_some(),
            ..Level::default()
        };
        Search {
            machine: Rewind::new(machine),
            observer,
            settings,
            levels: vec![first],
            depth: 0,
            half: None,
            counts: Counts::default(),
            bugs: Bugs::within(settings.preemptions, settings.keep_going),
            failures: Vec::new(),
            unrolled: false,
            hopeless: false,
            given_up: 0,
            stopped: false,
            scratch: bound::Scratch::default(),
            schedule: GraphSchedule::default(),
            spins: Spins::default(),
            share: 1.0,
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

    /// Where a graph was given up because of an iteration that turns out to touch what others can reach, the search starts over.
    fn run_until_enough_is_known(&mut self) -> Ending {
        loop {
            let ending = self.run();
            let complete = ending == Ending::Complete;
            let misjudged = self.machine.misjudged();
            if !complete || !misjudged {
                return ending;
            }
            self.counts = Counts::default();
            self.share = 1.0;
            self.depth = 0;
            self.levels[0].clear();
            self.observer.restart();
        }
    }

    fn run(&mut self) -> Ending {
        self.machine.reset();
        self.failures.clear();
        self.schedule.begin();
        if let ControlFlow::Break(ending) = self.check(ThreadId::MAIN) {
            return ending;
        }
        match self.complete() {
            ControlFlow::Continue(()) => self.go_on(),
            ControlFlow::Break(ending) => ending,
        }
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
        &mut self.levels[self.depth]
    }

    fn graph(&self) -> &Graph {
        &self.levels[self.depth].graph
    }

    /// Adds events in step with the machine until the execution ends.
    fn grow(&mut self) -> ControlFlow<Ending, Grown> {
        loop {
            if self.hopeless {
                return ControlFlow::Continue(Grown::Dropped);
            }
            if let Some(thread) = self.half.take() {
                let branch = self.half_branch(thread);
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
                    let event = self.write_event(thread, op, Kind::Write, value);
                    let branch = WriteBranch::new(self.level(), event, at, Place::Anywhere);
                    if !self.add_write(branch)? {
                        return ControlFlow::Continue(Grown::Dropped);
                    }
                }
                Op::Choose { alternatives } => {
                    if alternatives > 1 {
                        self.remember(Branch::Choose {
                            thread,
                            op,
                            next: 1,
                            alternatives,
                        });
                    }
                    self.add_silent(thread, op, 0)?;
                }
                Op::Fence { .. } | Op::Create { .. } | Op::Join { .. } | Op::JoinAll => {
                    self.add_silent(thread, op, 0)?;
                }
            }
        }
    }

    fn remember(&mut self, branch: Branch) {
        let level = &mut self.levels[self.depth];
        let events = level.graph.len();
        // The alternative that is tried first counts as one more.
        let untried = branch.untried(&level.graph) as f64;
        let share = self.share * untried / (untried + 1.0);
        self.share -= share;
        level.choices.push(Choice {
            events,
            branch,
            share,
        });
    }

    fn add_silent(&mut self, thread: ThreadId, op: Op, choice: u32) -> ControlFlow<Ending> {
        self.push_silent(thread, op, choice);
        let outcome = Outcome {
            read: Value::from(choice),
            wrote: None,
        };
        self.resume(thread, outcome)
    }

    fn push_silent(&mut self, thread: ThreadId, op: Op, choice: u32) {
        let threads = self.machine.threads();
        let level = self.level();
        level.graph.reserve_threads(threads);
        let mut event = Event::new(level.graph.next_id(thread), Kind::Silent, op);
        event.choice = choice;
        event.read = Value::from(choice);
        let slot = level.graph.push_silent(event);
        level.added(slot);
    }

    fn add_read(&mut self, thread: ThreadId, op: Op, at: Location) -> ControlFlow<Ending> {
        let initial = self.machine.initial(at);
        let level = self.level();
        let mut branch = ReadBranch::new(level, thread, op, at, initial);
        if branch.has_more() {
            self.try_spinning(&mut branch)?;
        }
        let level = self.level();
        let read = branch
            .advance(&level.graph)
            .expect("the newest write can always be read");
        if branch.has_more() {
            self.remember(Branch::Read(branch));
        }
        let level = self.level();
        let event = read.push(level, thread, op, at);
        match event.kind {
            Kind::Parked => ControlFlow::Continue(()),
            Kind::ReadHalf => {
                self.half = Some(thread);
                ControlFlow::Continue(())
            }
            _ => {
                let outcome = Outcome {
                    read: event.read,
                    wrote: None,
                };
                self.resume(thread, outcome)
            }
        }
    }

    /// The alternatives to the write half that `thread` owes.
    fn half_branch(&mut self, thread: ThreadId) -> WriteBranch {
        let graph = self.graph();
        let last = graph.last(thread).expect("the read half is there");
        let half = *graph.event(last);
        let at = half.op.location().expect("updates have a location");
        let mut event = self.write_event(thread, half.op, Kind::WriteHalf, half.wrote);
        event.read = half.read;
        WriteBranch::new(self.level(), event, at, Place::After(half.source))
    }

    fn write_event(&mut self, thread: ThreadId, op: Op, kind: Kind, value: Value) -> Event {
        let mut event = Event::new(self.graph().next_id(thread), kind, op);
        event.wrote = value;
        event
    }

    /// Takes the first alternative of a write and remembers the others. The first may already be a
    /// revisit, which the machine has to be replayed for. False if there is none at all.
    fn add_write(&mut self, mut branch: WriteBranch) -> ControlFlow<Ending, bool> {
        let Some(position) = branch.next_place(self.graph()) else {
            self.remember(Branch::Write(branch));
            let before = (self.depth, self.graph().len());
            let found = self.backtrack_to_child();
            if found && !self.wake(before)? {
                self.replay_as_scheduled()?;
            }
            return ControlFlow::Continue(found);
        };
        let (event, at) = (branch.event, branch.location);
        if branch.has_more() {
            self.remember(Branch::Write(branch));
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
        self.resume(event.id.thread, outcome)?;
        ControlFlow::Continue(true)
    }

    /// Lets the machine perform what the last event of `thread` stands for.
    fn resume(&mut self, thread: ThreadId, outcome: Outcome) -> ControlFlow<Ending> {
        let level = &self.levels[self.depth];
        let last = level.graph.last(thread).expect("an event was just added");
        if level.bounded {
            self.schedule.go_on(level, last);
        }
        let clock = level.model.happens_before(&level.graph, last);
        let pending = self.machine.pending(thread);
        self.machine.resume(thread, outcome, clock);
        self.check(thread)?;
        // A new thread may come to its end before its first visible operation.
        match pending {
            Pending::Op(Op::Create { child }) => self.check(child),
            _ => ControlFlow::Continue(()),
        }
    }

    /// Goes back to the latest untried alternative and applies it to the graph. False if there is
    /// none left. The machine has to be replayed afterwards.
    fn backtrack(&mut self) -> bool {
        loop {
            if !self.stopped && self.backtrack_to_child() {
                return true;
            }
            if self.depth == 0 || self.stopped {
                return false;
            }
            self.depth -= 1;
        }
    }

    /// The same within the present level and those opened by its alternatives.
    fn backtrack_to_child(&mut self) -> bool {
        self.half = None;
        self.hopeless = false;
        while let Some(mut choice) = self.level().choices.pop() {
            self.level().undo(choice.events);
            self.share = choice.share / choice.branch.untried(self.graph()) as f64;
            choice.share -= self.share;
            if !self.apply_next(&mut choice.branch) {
                continue;
            }
            // A revisit opened a level of its own; the choice belongs to the one below.
            let owner = match choice.branch {
                Branch::Write(ref branch) if branch.revisiting() => self.depth - 1,
                _ => self.depth,
            };
            if choice.branch.has_more() {
                self.levels[owner].choices.push(choice);
            }
            if self.place_half() && self.within_bound() {
                return true;
            }
            self.given_up();
            if self.stopped {
                return false;
            }
        }
        false
    }

    /// Adds the write half that is owed, if one is, before the machine is replayed. If it has no
    /// place, its revisits are left as a choice.
    fn place_half(&mut self) -> bool {
        let Some(thread) = self.half.take() else {
            return true;
        };
        let mut branch = self.half_branch(thread);
        let position = branch.next_place(self.graph());
        let (event, at) = (branch.event, branch.location);
        if branch.has_more() {
            self.remember(Branch::Write(branch));
        }
        match position {
            Some(position) => self.level().push_write(event, at, position),
            None => return false,
        }
        true
    }

    fn apply_next(&mut self, branch: &mut Branch) -> bool {
        match branch {
            Branch::Choose {
                thread,
                op,
                next,
                alternatives,
            } => {
                if next == alternatives {
                    return false;
                }
                *next += 1;
                let (thread, op, choice) = (*thread, *op, *next - 1);
                self.push_silent(thread, op, choice);
                true
            }
            Branch::Read(branch) => {
                let Some(event) = self.apply_read(branch) else {
                    return false;
                };
                if event.kind == Kind::ReadHalf {
                    self.half = Some(branch.thread);
                }
                true
            }
            Branch::Write(branch) => {
                let level = &mut self.levels[self.depth];
                if let Some(position) = branch.next_place(&level.graph) {
                    level.push_write(branch.event, branch.location, position);
                    return true;
                }
                self.apply_revisit(branch)
            }
        }
    }

    /// Adds the read with the next source that does not make its thread spin. Sources that do are only counted if they are
    /// beyond the bound, as they would be if nothing were known of the loop.
    fn apply_read(&mut self, branch: &mut ReadBranch) -> Option<Event> {
        loop {
            let level = &mut self.levels[self.depth];
            let read = branch.advance(&level.graph)?;
            if read.futile && !level.bounded {
                continue;
            }
            let events = level.graph.len();
            let futile = read.futile;
            let event = read.push(level, branch.thread, branch.op, branch.location);
            if !futile {
                return Some(event);
            }
            self.may_lead_within();
            self.level().undo(events);
        }
    }

    fn apply_revisit(&mut self, branch: &mut WriteBranch) -> bool {
        if self.levels.len() == self.depth + 1 {
            self.levels.push(Level::default());
        }
        let (below, above) = self.levels.split_at_mut(self.depth + 1);
        let Some(revised) = branch.next_revisit(&below[self.depth], &mut above[0]) else {
            return false;
        };
        self.depth += 1;
        self.half = revised;
        true
    }
}
