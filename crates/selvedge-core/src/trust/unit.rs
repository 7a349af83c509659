//! Work units: unexplored parts of a search as values.
//!
//! Between two executions, all work that is left stands in the choices of the levels, and a choice
//! depends on nothing but the graph of its level up to the event it is about. So the levels with their
//! choices are all that another search, perhaps in another process, needs to go on. Exploring a unit is
//! a pure function: what else a search keeps only makes it faster.

use serde::{Deserialize, Serialize};

use super::branch::Branch;
use super::level::{Choice, Level};
use super::maximal::stable;
use crate::graph::SavedGraph;
use crate::model::Model;

/// A part of the search tree that is still to be explored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Unit {
    levels: Vec<SavedLevel>,
}

/// A level with what is still to be tried there.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedLevel {
    graph: SavedGraph,
    choices: Vec<SavedChoice>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct SavedChoice {
    events: usize,
    branch: Branch,
}

impl Unit {
    /// What is left to be tried in `levels`; nothing if that is nothing.
    pub(super) fn of<C: Model>(levels: &[Level<C>]) -> Option<Unit> {
        let open = levels.iter().filter_map(|level| {
            let last = level.choices.last()?;
            let choices = level.choices.iter().map(|choice| SavedChoice {
                events: choice.events,
                branch: choice.branch.clone(),
            });
            Some(SavedLevel {
                graph: SavedGraph::of(&level.graph, last.events),
                choices: choices.collect(),
            })
        });
        let levels: Vec<SavedLevel> = open.collect();
        (!levels.is_empty()).then_some(Unit { levels })
    }

    /// Makes `levels` those of the search that the unit was taken from. Returns the last one.
    pub(super) fn load<C: Model>(self, levels: &mut Vec<Level<C>>) -> usize {
        levels.resize_with(levels.len().max(self.levels.len()), Level::default);
        let depth = self.levels.len() - 1;
        for (level, saved) in levels.iter_mut().zip(self.levels) {
            level.clear();
            // What comes after the first choice will be undone, so it is added event by event.
            let kept = saved.choices.first().map_or(0, |choice| choice.events);
            level.graph.load(&saved.graph, kept);
            level.model.rebuild(&level.graph, None);
            stable(&level.graph, &mut level.stable);
            for _ in kept..saved.graph.len() {
                let slot = level.graph.push_saved(&saved.graph);
                level.added(slot);
            }
            level
                .choices
                .extend(saved.choices.into_iter().map(|choice| Choice {
                    events: choice.events,
                    branch: choice.branch,
                }));
        }
        depth
    }

    /// Takes the oldest choice away, which has the largest part of the tree below it and is explored
    /// last. `None` if it is the only one.
    pub fn split(&mut self) -> Option<Unit> {
        if self.choices() < 2 {
            return None;
        }
        let oldest = &mut self.levels[0];
        let choice = oldest.choices.remove(0);
        let mut graph = oldest.graph.clone();
        graph.truncate(choice.events);
        if oldest.choices.is_empty() {
            self.levels.remove(0);
        }
        let choices = vec![choice];
        Some(Unit {
            levels: vec![SavedLevel { graph, choices }],
        })
    }

    /// How many choices there are.
    pub fn choices(&self) -> usize {
        self.levels.iter().map(|level| level.choices.len()).sum()
    }
}
