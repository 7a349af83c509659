//! The steps to nodes that one of several peers has won.

use super::chunks::Chunks;
use super::queue::{Node, PackedStep};

/// The nodes that this peer has won since they work apart, by number: the node before and the step
/// from there.
pub(super) struct Ways {
    nodes: Chunks<(Node, Node, PackedStep)>,
    /// The number of the next node.
    next: Node,
    /// The first node of this time.
    first: Node,
}

impl Ways {
    /// Nothing yet; the next node has this number.
    pub(super) fn starting_at(first: Node) -> Ways {
        Ways {
            nodes: Chunks::default(),
            next: first,
            first,
        }
    }

    /// The first node since they work apart.
    pub(super) fn first(&self) -> Node {
        self.first
    }

    /// The number of the next node.
    pub(super) fn next(&self) -> Node {
        self.next
    }

    /// Continues numbering after `nodes` more nodes.
    pub(super) fn advance(&mut self, nodes: usize) {
        self.next += nodes as Node;
    }

    /// Notes how a node was reached that comes after all others of this peer.
    pub(super) fn push(&mut self, node: Node, parent: Node, step: PackedStep) {
        self.nodes.push((node, parent, step));
    }

    /// How a node was reached, if this peer has won it.
    pub(super) fn get(&self, node: Node) -> Option<(Node, PackedStep)> {
        let (mut low, mut high) = (0, self.nodes.len() as u32);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.nodes[middle].0 < node {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let found = (low < self.nodes.len() as u32).then(|| self.nodes[low]);
        found
            .filter(|&(number, ..)| number == node)
            .map(|(_, parent, step)| (parent, step))
    }

    /// How much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.bytes()
    }
}
