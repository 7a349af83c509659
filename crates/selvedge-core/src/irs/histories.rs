//! The sequences of events that a thread performed in the explored executions.
//!
//! A running program compares its events with them. So it notices an execution that was never explored
//! at the first event that differs. The sequences are a trie; a pure iteration of a spin loop leads
//! back to the node where it began, because it may be repeated any number of times.

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::ids::Site;
use crate::op::Op;

/// A place in the trie.
pub(super) type NodeId = u32;

/// Before the first event.
pub(super) const ROOT: NodeId = 0;

/// Beyond the part of the trie that is kept.
const BEYOND: NodeId = NodeId::MAX;

/// How many nodes are kept for a thread. What lies beyond them is not checked.
const LIMIT: usize = 1 << 14;

/// A sequence of events: that of its parent, and one more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// The number of the sequence without the last event; a parent comes before its children.
    pub parent: u32,
    /// The last event.
    pub event: Happening,
    /// The sequences that lead to the same state, because a pure iteration ended here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<u32>,
    /// Whether there were more continuations than those that are kept.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
}

/// An event as running programs know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Happening {
    /// An operation on memory or on an object.
    At(Site),
    /// A thread is created or joined. There may be other events at the same site, because the function also
    /// stores its result.
    Thread(Site),
    /// The thread ends.
    End,
}

impl Happening {
    /// How an operation is recorded. Fences and choices change nothing that other threads can see; the end of the
    /// process waits for threads without being asked to.
    pub(super) fn of(op: Op, site: Site) -> Option<Happening> {
        match op {
            Op::Create { .. } | Op::Join { .. } => Some(Happening::Thread(site)),
            Op::JoinAll | Op::Fence { .. } | Op::Choose { .. } => None,
            Op::Load { .. } | Op::Store { .. } | Op::Update { .. } => Some(Happening::At(site)),
        }
    }
}

/// The sequences of one thread. The first one is empty.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Vec<History>", into = "Vec<History>")]
pub(super) struct Histories {
    nodes: Vec<History>,
    children: FxHashMap<(NodeId, Happening), NodeId>,
}

impl Default for Histories {
    fn default() -> Histories {
        Histories::from(vec![History {
            parent: ROOT,
            event: Happening::End,
            repeats: Vec::new(),
            open: false,
        }])
    }
}

impl From<Vec<History>> for Histories {
    fn from(nodes: Vec<History>) -> Histories {
        let numbered = nodes.iter().zip(0..).skip(1);
        let children = numbered.map(|(node, number)| ((node.parent, node.event), number));
        Histories {
            children: children.collect(),
            nodes,
        }
    }
}

impl From<Histories> for Vec<History> {
    fn from(histories: Histories) -> Vec<History> {
        histories.nodes
    }
}

impl Histories {
    /// The sequences, parents before children.
    pub(super) fn nodes(&self) -> &[History] {
        &self.nodes
    }

    /// The sequence `from` with an event added.
    pub(super) fn step(&mut self, from: NodeId, event: Happening) -> NodeId {
        if from == BEYOND {
            return BEYOND;
        }
        if let Some(&known) = self.children.get(&(from, event)) {
            return known;
        }
        if self.nodes.len() >= LIMIT {
            self.nodes[from as usize].open = true;
            return BEYOND;
        }
        let new = self.nodes.len() as NodeId;
        self.nodes.push(History {
            parent: from,
            event,
            repeats: Vec::new(),
            open: false,
        });
        self.children.insert((from, event), new);
        new
    }

    /// A pure iteration that began after the sequence `to` ended after the sequence `from`.
    pub(super) fn repeat(&mut self, from: NodeId, to: NodeId) {
        if from == BEYOND || to == BEYOND || from == to {
            return;
        }
        let repeats = &mut self.nodes[from as usize].repeats;
        if !repeats.contains(&to) {
            repeats.push(to);
        }
    }

    /// Adds the sequences of another search.
    pub(super) fn merge(&mut self, other: &Histories) {
        let mut mapped = vec![ROOT; other.nodes.len()];
        for (number, node) in other.nodes.iter().enumerate().skip(1) {
            mapped[number] = self.step(mapped[node.parent as usize], node.event);
        }
        for (node, &from) in other.nodes.iter().zip(&mapped) {
            if from != BEYOND {
                self.nodes[from as usize].open |= node.open;
            }
            for &to in &node.repeats {
                self.repeat(from, mapped[to as usize]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(histories: &mut Histories, sites: &[u64]) -> NodeId {
        let events = sites.iter().map(|&site| Happening::At(Site(site)));
        events.fold(ROOT, |node, event| histories.step(node, event))
    }

    #[test]
    fn merged_histories_hold_the_sequences_of_both() {
        let (mut one, mut two) = (Histories::default(), Histories::default());
        sequence(&mut one, &[1, 2, 3]);
        let begin = sequence(&mut two, &[1]);
        let end = sequence(&mut two, &[1, 4, 4]);
        two.repeat(end, begin);
        one.merge(&two);
        assert_eq!(one.nodes().len(), 6);
        let end = sequence(&mut one, &[1, 4, 4]);
        let begin = sequence(&mut one, &[1]);
        assert_eq!(one.nodes().len(), 6, "nothing was new");
        assert_eq!(one.nodes()[end as usize].repeats, [begin]);
        let restored = Histories::from(Vec::from(one.clone()));
        assert_eq!(restored.nodes(), one.nodes());
        assert_eq!(restored.children, one.children);
    }

    #[test]
    fn what_is_too_much_is_left_open() {
        let mut histories = Histories::default();
        let all: Vec<u64> = (0..LIMIT as u64 + 5).collect();
        assert_eq!(sequence(&mut histories, &all), BEYOND);
        assert_eq!(histories.nodes().len(), LIMIT);
        assert!(histories.nodes()[LIMIT - 1].open);
        assert!(!histories.nodes()[LIMIT - 2].open);
    }
}
