//! Work units: unexplored parts of a search as values.
//!
//! Between two executions, the remaining work consists of the choices of the levels, and a choice depends only on the
//! graph of its level up to the event of the choice. So another search, perhaps in another process, needs only the
//! levels with their choices to continue. Exploring a unit is a pure function: the other state of a search only makes
//! it faster.
//!
//! Units name threads by numbers, and say where in the tree of creations each numbered thread stands. The operations of
//! threads are not saved: the machine tells them when the unit is taken up.

use serde::{Deserialize, Serialize};

use super::branch::{Branch, Oldest, Positions, ReadBranch};
use super::cursor::Cursor;
use super::level::{Choice, Level};
use super::maximal::stable;
use super::writes::{Left, WriteBranch};
use crate::graph::{Event, Graph, Kind, Performed, SavedGraph};
use crate::ids::{EventId, ThreadId};
use crate::machine::{Machine, Pending, Portable};
use crate::model::Model;
use crate::op::{Op, Value};

/// A part of the search tree that is still to be explored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unit {
    /// The creator of each thread but main, and how many threads that creates before.
    spawned: Vec<(ThreadId, u32)>,
    levels: Vec<SavedLevel>,
}

/// A level with what is still to be tried there.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SavedLevel {
    graph: SavedGraph,
    choices: Vec<SavedChoice>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedChoice {
    events: usize,
    thread: ThreadId,
    untried: Untried,
    share: f64,
}

/// The untried alternatives of a branch.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Untried {
    Choose { next: u32 },
    Read(Positions, Oldest),
    Write(Left),
    WriteHalf(Left),
}

impl SavedChoice {
    fn of(choice: &Choice) -> SavedChoice {
        let (thread, untried) = match &choice.branch {
            &Branch::Choose { thread, next, .. } => (thread, Untried::Choose { next }),
            Branch::Read(branch) => {
                let (positions, oldest) = branch.left();
                (branch.thread, Untried::Read(positions, oldest))
            }
            Branch::Write(branch) => {
                let left = branch.left().clone();
                let untried = match branch.event.kind {
                    Kind::WriteHalf => Untried::WriteHalf(left),
                    _ => Untried::Write(left),
                };
                (branch.event.id.thread, untried)
            }
        };
        SavedChoice {
            events: choice.events,
            thread,
            untried,
            share: choice.share,
        }
    }

    /// The choice, where its thread is about to do `op` and the location of that held `initial` at
    /// first. `last` is the event before.
    fn load(self, op: Op, initial: Value, id: EventId, last: Option<&Event>) -> Option<Choice> {
        let thread = self.thread;
        let branch = match (self.untried, op) {
            (Untried::Choose { next }, Op::Choose { alternatives }) => Branch::Choose {
                thread,
                op,
                next,
                alternatives,
            },
            (Untried::Read(positions, oldest), Op::Load { at, .. } | Op::Update { at, .. }) => {
                let left = (positions, oldest);
                Branch::Read(ReadBranch::of_left((thread, op, at), initial, left))
            }
            (Untried::Write(left), Op::Store { at, value, .. }) => {
                let mut event = Event::new(id, Kind::Write, op);
                event.wrote = value;
                Branch::Write(WriteBranch::of_left(event, at, None, left))
            }
            (Untried::WriteHalf(left), Op::Update { at, .. }) => {
                let half = last.filter(|event| event.kind == Kind::ReadHalf)?;
                let mut event = Event::new(id, Kind::WriteHalf, op);
                (event.read, event.wrote) = (half.read, half.wrote);
                Branch::Write(WriteBranch::of_left(event, at, Some(half.source), left))
            }
            _ => return None,
        };
        Some(Choice {
            events: self.events,
            branch,
            share: self.share,
        })
    }
}

impl SavedLevel {
    /// The level that `graph` belongs to, with nothing but `choice`.
    pub(super) fn of_choice(graph: &Graph, choice: &Choice) -> SavedLevel {
        SavedLevel {
            graph: SavedGraph::of(graph, choice.events),
            choices: vec![SavedChoice::of(choice)],
        }
    }

    /// Makes `level` this one, with a machine that is to perform what was done so far.
    pub(super) fn load<C: Model, M: Machine>(
        self,
        level: &mut Level<C>,
        machine: &mut M,
    ) -> Result<(), String> {
        let performed = self.graph.perform(machine)?;
        level.clear();
        // The events after the first choice will be undone, so they are added one by one.
        let kept = self.choices.first().map_or(0, |choice| choice.events);
        level.graph.load(&self.graph, &performed, kept);
        level.model.rebuild(&level.graph, None);
        level.rebuild_overlay();
        stable(&level.graph, &mut level.stable);
        for _ in kept..self.graph.len() {
            let slot = level.graph.push_saved(&self.graph, &performed);
            level.added(slot);
        }
        for choice in self.choices {
            let choice = restored(choice, &performed, machine)
                .ok_or("a work unit does not fit the program")?;
            level.choices.push(choice);
        }
        Ok(())
    }
}

/// The choice as it is in this process.
fn restored<M: Machine>(choice: SavedChoice, performed: &Performed, machine: &M) -> Option<Choice> {
    let own = |event: &&Event| event.id.thread == choice.thread;
    let before = performed.events.get(..choice.events)?;
    let last = before.iter().rev().find(own);
    let id = EventId {
        thread: choice.thread,
        index: before.iter().filter(own).count() as u32,
    };
    let half = last.filter(|_| matches!(choice.untried, Untried::WriteHalf(_)));
    // The alternative that is being tried, if there is one, is the next event.
    let tried = performed.events.get(choice.events);
    let (op, initial) = match (half, tried) {
        (Some(half), _) => (half.op, 0),
        (None, Some(tried)) if tried.id == id => (tried.op, performed.initial[choice.events]),
        (None, Some(_)) => return None,
        (None, None) => match machine.pending(choice.thread) {
            Pending::Op(op) => (op, op.location().map_or(0, |at| machine.initial(at))),
            _ => return None,
        },
    };
    choice.load(op, initial, id, last)
}

impl Unit {
    /// The untried alternatives; `None` if there are none.
    pub(super) fn of<C: Model>(cursor: &Cursor<C>, spawned: Vec<(ThreadId, u32)>) -> Option<Unit> {
        let open = cursor.levels[..=cursor.depth].iter().filter_map(|level| {
            let last = level.choices.last()?;
            Some(SavedLevel {
                graph: SavedGraph::of(&level.graph, last.events),
                choices: level.choices.iter().map(SavedChoice::of).collect(),
            })
        });
        let levels: Vec<SavedLevel> = open.collect();
        (!levels.is_empty()).then_some(Unit { spawned, levels })
    }

    /// Makes `cursor` the one that the unit was taken from.
    pub(super) fn load<C: Model, M: Portable>(
        self,
        cursor: &mut Cursor<C>,
        machine: &mut M,
    ) -> Result<(), String> {
        machine.number_threads(&self.spawned);
        let levels = &mut cursor.levels;
        levels.resize_with(levels.len().max(self.levels.len()), Level::default);
        cursor.depth = self.levels.len().saturating_sub(1);
        let bounded = levels[0].bounded;
        for (level, saved) in levels.iter_mut().zip(self.levels) {
            level.bounded = bounded;
            saved.load(level, machine)?;
        }
        Ok(())
    }

    /// Takes the oldest choice away, which has the largest part of the tree below it and is explored
    /// last. `None` if it is the only one.
    pub fn split(&mut self) -> Option<Unit> {
        if self.choices() < 2 {
            return None;
        }
        self.levels.retain(|level| !level.choices.is_empty());
        let oldest = &mut self.levels[0];
        let choice = oldest.choices.remove(0);
        let mut graph = oldest.graph.clone();
        graph.truncate(choice.events);
        if oldest.choices.is_empty() {
            self.levels.remove(0);
        }
        let choices = vec![choice];
        Some(Unit {
            spawned: self.spawned.clone(),
            levels: vec![SavedLevel { graph, choices }],
        })
    }

    /// Divides it into at most this many units, in the order of the search tree.
    pub fn pieces(mut self, most: u64) -> Vec<Unit> {
        let mut units = Vec::new();
        while (units.len() as u64) + 1 < most
            && let Some(oldest) = self.split()
        {
            units.push(oldest);
        }
        units.push(self);
        units.reverse();
        units
    }

    /// How many choices there are.
    pub fn choices(&self) -> usize {
        self.levels.iter().map(|level| level.choices.len()).sum()
    }

    /// The part of the search tree that it is taken to be; all of it is 1.
    pub fn share(&self) -> f64 {
        let choices = self.levels.iter().flat_map(|level| &level.choices);
        choices.map(|choice| choice.share).sum()
    }
}
