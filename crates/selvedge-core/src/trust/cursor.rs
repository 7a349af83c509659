//! Where a search stands: its graphs and their untried alternatives.
//!
//! The cursor alone decides what is explored, and in which order. It knows neither the machine nor the
//! observer: [`advance`](Cursor::advance) turns the latest untried alternative into the next graph, and the
//! search brings the machine there.

use super::branch::{Branch, ReadBranch};
use super::descend::Sampler;
use super::level::{Choice, Level};
use super::writes::{WriteBranch, WritePlace};
use crate::graph::{Event, Graph, Kind, Slot};
use crate::ids::ThreadId;
use crate::model::Model;
use crate::op::{Op, Value};

/// The graphs of nested revisits with their untried alternatives.
pub(super) struct Cursor<C> {
    /// One for each nested revisit; those beyond `depth` are kept for their memory.
    pub(super) levels: Vec<Level<C>>,
    pub(super) depth: usize,
    /// The thread whose last event is a read half without its write half.
    pub(super) half: Option<ThreadId>,
    /// The event that the latest alternative began with: the one that was added, or the read that was revisited.
    pub(super) changed: Slot,
    /// The part of the search tree that the present graph is taken to be; see [`Choice::share`].
    share: f64,
    /// Takes the alternatives in random descents.
    pub(super) sampler: Option<Box<Sampler>>,
}

/// The result of [`Cursor::advance`].
pub(super) enum Advanced {
    /// The next graph to explore.
    Graph,
    /// A graph in which a read makes its thread repeat an iteration that is known already: the graph
    /// needs no exploration.
    Futile,
    /// A graph with an update that cannot write anywhere. Its revisits are left as a choice.
    NoPlace,
    /// The present level has no untried alternative.
    Exhausted,
}

impl<C: Model> Cursor<C> {
    pub(super) fn new(bounded: bool) -> Cursor<C> {
        let first = Level {
            bounded,
            ..Level::default()
        };
        Cursor {
            levels: vec![first],
            depth: 0,
            half: None,
            changed: 0,
            share: 1.0,
            sampler: None,
        }
    }

    /// Back to the empty graph.
    pub(super) fn restart(&mut self) {
        self.depth = 0;
        self.half = None;
        self.share = 1.0;
        self.levels[0].clear();
    }

    pub(super) fn level(&self) -> &Level<C> {
        &self.levels[self.depth]
    }

    pub(super) fn level_mut(&mut self) -> &mut Level<C> {
        &mut self.levels[self.depth]
    }

    pub(super) fn graph(&self) -> &Graph {
        &self.levels[self.depth].graph
    }

    /// Keeps the alternatives to the event that is added to `events` others, besides the one that is being `tried`,
    /// if one is.
    pub(super) fn remember(&mut self, events: usize, branch: Branch, tried: bool) {
        if self.sampler.is_some() {
            return self.spread(events, branch);
        }
        let level = &mut self.levels[self.depth];
        let untried = branch.untried(&level.graph) as f64;
        let share = self.share * untried / (untried + f64::from(tried));
        self.share -= share;
        level.choices.push(Choice {
            events,
            branch,
            share,
        });
    }

    /// Takes back all but `events` events of the present graph, with their alternatives.
    pub(super) fn forget(&mut self, events: usize) {
        let level = &mut self.levels[self.depth];
        while let Some(choice) = level.choices.pop_if(|choice| choice.events >= events) {
            self.share += choice.share;
        }
        level.undo(events);
    }

    pub(super) fn push_silent(&mut self, thread: ThreadId, op: Op, choice: u32) {
        let level = self.level_mut();
        let mut event = Event::new(level.graph.next_id(thread), Kind::Silent, op);
        event.choice = choice;
        event.read = Value::from(choice);
        let slot = level.graph.push_silent(event);
        level.added(slot);
    }

    /// The alternatives to the write half that `thread` owes.
    pub(super) fn half_branch(&mut self, thread: ThreadId) -> WriteBranch {
        let graph = self.graph();
        let last = graph.last(thread).expect("the read half is there");
        let half = *graph.event(last);
        let at = half.op.location().expect("updates have a location");
        let mut event = self.write_event(thread, half.op, Kind::WriteHalf, half.wrote);
        event.read = half.read;
        WriteBranch::new(self.level_mut(), event, at, WritePlace::After(half.source))
    }

    pub(super) fn write_event(&self, thread: ThreadId, op: Op, kind: Kind, value: Value) -> Event {
        let mut event = Event::new(self.graph().next_id(thread), kind, op);
        event.wrote = value;
        event
    }

    /// Goes back to the level below. False if there is none.
    pub(super) fn leave_level(&mut self) -> bool {
        let left = self.depth > 0;
        self.depth -= usize::from(left);
        left
    }

    /// Goes back to the latest untried alternative of the present level and applies it to the graph.
    pub(super) fn advance(&mut self) -> Advanced {
        self.half = None;
        while let Some(mut choice) = self.level_mut().choices.pop() {
            self.level_mut().undo(choice.events);
            self.share = choice.share / choice.branch.untried(self.graph()) as f64;
            choice.share -= self.share;
            self.changed = choice.events as Slot;
            let Some(futile) = self.apply_next(&mut choice.branch) else {
                continue;
            };
            // A revisit opened a level of its own; the choice belongs to the one below.
            let owner = match choice.branch {
                Branch::Write(ref branch) if branch.revisiting() => self.depth - 1,
                _ => self.depth,
            };
            if choice.branch.has_more() {
                self.levels[owner].choices.push(choice);
            }
            return match futile {
                true => Advanced::Futile,
                false if self.place_half() => Advanced::Graph,
                false => Advanced::NoPlace,
            };
        }
        Advanced::Exhausted
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
            let events = self.graph().len();
            self.remember(events, Branch::Write(branch), position.is_some());
        }
        match position {
            Some(position) => self.level_mut().push_write(event, at, position),
            None => return false,
        }
        true
    }

    /// Applies the next alternative of `branch`, if there is one. Tells whether it is futile.
    pub(super) fn apply_next(&mut self, branch: &mut Branch) -> Option<bool> {
        match branch {
            Branch::Choose {
                thread,
                op,
                next,
                alternatives,
            } => {
                if next == alternatives {
                    return None;
                }
                *next += 1;
                let (thread, op, choice) = (*thread, *op, *next - 1);
                self.push_silent(thread, op, choice);
                Some(false)
            }
            Branch::Read(branch) => self.apply_read(branch),
            Branch::Write(branch) => {
                let level = &mut self.levels[self.depth];
                if let Some(position) = branch.next_place(&level.graph) {
                    level.push_write(branch.event, branch.location, position);
                    return Some(false);
                }
                self.apply_revisit(branch).then_some(false)
            }
        }
    }

    /// Adds the read with its next source. Sources that make its thread spin are skipped, unless there is a
    /// bound: they count as pruned if they are beyond it, as they would if nothing were known of the loop.
    fn apply_read(&mut self, branch: &mut ReadBranch) -> Option<bool> {
        let level = &mut self.levels[self.depth];
        let read = loop {
            let read = branch.advance(&level.graph)?;
            if level.bounded || !read.futile {
                break read;
            }
        };
        let futile = read.futile;
        let event = read.push(level, branch.thread, branch.op, branch.location);
        if event.kind == Kind::ReadHalf && !futile {
            self.half = Some(branch.thread);
        }
        Some(futile)
    }

    fn apply_revisit(&mut self, branch: &mut WriteBranch) -> bool {
        if self.levels.len() == self.depth + 1 {
            self.levels.push(Level::default());
        }
        let (below, above) = self.levels.split_at_mut(self.depth + 1);
        let Some((read, half)) = branch.next_revisit(&below[self.depth], &mut above[0]) else {
            return false;
        };
        self.depth += 1;
        self.changed = read;
        self.half = half;
        true
    }
}
