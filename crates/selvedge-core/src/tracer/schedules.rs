//! The schedules of a frame: the paper's `Schedules(e)`.

use crate::ids::{EventId, ThreadId};

/// One step of a schedule: the write that the pending operation of a thread reads. The operation
/// itself is determined by the steps before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) thread: ThreadId,
    /// The write that is read; `None` for the initial one and for operations that do not read.
    pub(super) source: Option<EventId>,
    pub(super) choice: u32,
}

/// The difference between schedules: the write that an event reads, and its choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Observation {
    pub(super) event: EventId,
    pub(super) source: Option<EventId>,
    pub(super) choice: u32,
}

/// The schedules that are still to be run, and a prefix tree of the observations of all schedules
/// so far. Schedules with equal sets of observations are equivalent (`β ≈ β'` in Algorithm 2, line
/// 9).
#[derive(Debug, Default)]
pub(super) struct Schedules {
    steps: Vec<Step>,
    /// The index in `steps` of the first step of each schedule that is still to be run.
    starts: Vec<usize>,
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    observation: Observation,
    first_child: u32,
    next_sibling: u32,
}

const NONE: u32 = u32::MAX;

impl Schedules {
    pub(super) fn clear(&mut self) {
        self.steps.clear();
        self.starts.clear();
        self.nodes.clear();
    }

    /// Inserts the observations of a schedule, in canonical order; whether they are new. No
    /// schedule's observations are a proper prefix of another's: the first one says which write the
    /// schedule is for, and all others are needed for that write.
    pub(super) fn is_new(&mut self, observations: &[Observation]) -> bool {
        let mut new = false;
        let mut parent = NONE;
        for &observation in observations {
            let first = match parent {
                NONE if self.nodes.is_empty() => NONE,
                NONE => 0,
                parent => self.nodes[parent as usize].first_child,
            };
            let mut last = NONE;
            let mut child = first;
            while child != NONE && self.nodes[child as usize].observation != observation {
                last = child;
                child = self.nodes[child as usize].next_sibling;
            }
            if child == NONE {
                new = true;
                child = self.nodes.len() as u32;
                self.nodes.push(Node {
                    observation,
                    first_child: NONE,
                    next_sibling: NONE,
                });
                if last != NONE {
                    self.nodes[last as usize].next_sibling = child;
                } else if parent != NONE {
                    self.nodes[parent as usize].first_child = child;
                }
            }
            parent = child;
        }
        new
    }

    /// Adds a schedule to be run.
    pub(super) fn push(&mut self, steps: impl Iterator<Item = Step>) {
        self.starts.push(self.steps.len());
        self.steps.extend(steps);
    }

    /// Moves the schedule added last into `steps`.
    pub(super) fn pop(&mut self, steps: &mut Vec<Step>) -> bool {
        let Some(start) = self.starts.pop() else {
            return false;
        };
        steps.clear();
        steps.extend(self.steps.drain(start..));
        true
    }
}
