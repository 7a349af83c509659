//! States without loss, in few bytes.

use super::hash;
use super::index::Index;
use super::parts::{Contents, EMPTY};

/// Numbers for tuples: a tuple is its first element and the number of the rest, and equal rests are
/// kept once. The empty tuple is 0, and so is one of empty parts only, so that tuples of any length
/// can be told apart.
#[derive(Default)]
pub(super) struct Chain {
    /// Entry *n* is the tuple with number *n* + 1.
    nodes: Vec<(Contents, u32)>,
    index: Index,
}

impl Chain {
    /// The number of the tuple that begins with `first` and goes on as `rest`.
    pub(super) fn number(&mut self, first: Contents, rest: u32) -> u32 {
        if (first, rest) == (EMPTY, 0) {
            return 0;
        }
        let (nodes, new) = (&self.nodes, self.nodes.len() as u32 + 1);
        let hash = hash::of_pair(first, rest);
        let found = self
            .index
            .find_or_insert(hash, new, |n| nodes[n as usize - 1] == (first, rest));
        found.unwrap_or_else(|| {
            self.nodes.push((first, rest));
            new
        })
    }

    /// The elements of a tuple, but for empty ones at its end.
    pub(super) fn elements(&self, mut number: u32, into: &mut Vec<Contents>) {
        into.clear();
        while number != 0 {
            let (first, rest) = self.nodes[number as usize - 1];
            into.push(first);
            number = rest;
        }
    }

    /// How much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<(u32, u32)>() + self.index.bytes()
    }
}
